// Random bits for rounding, in bulk: a function of the stream and the element's index alone.
#pragma once
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace megalith {

// out[i]: 16 bits of element begin + i of the stream. Philox's block 64 (e / 512) + e % 64 holds, as its 16-bit number
// e / 64 % 8, that of element e: so a loop over blocks fills runs of elements.
void random_bits(const Philox& stream, int64_t begin, std::span<uint16_t> out);

}  // namespace megalith

// Random bits for rounding, in bulk. The bits depend only on the stream and the element's index.
#pragma once
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace megalith {

// out[i] becomes the 16 bits of element begin + i of the stream. The bits of element e are 16-bit number e / 64 % 8 in
// Philox block 64 (e / 512) + e % 64. With this order, a loop over blocks writes consecutive elements.
void random_bits(const Philox& stream, int64_t begin, std::span<uint16_t> out);

}  // namespace megalith

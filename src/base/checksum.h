// The checksum of checkpoints and spill files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace megalith {

// XXH3, 64 bits, seed 0, in the widest registers there are.
uint64_t xxh3(std::span<const std::byte> bytes);

}  // namespace megalith

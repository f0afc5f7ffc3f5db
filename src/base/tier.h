// Says in which memory bytes are: in host memory, or in the memory of the device that computes the blocks.
#pragma once
#include <cstdint>

namespace megalith {

enum class Tier : uint8_t { host, device };
inline constexpr int kTiers = 2;

}  // namespace megalith

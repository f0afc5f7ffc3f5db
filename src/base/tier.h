// The memory that holds some bytes: the host's, or that of the device that computes the blocks.
#pragma once
#include <cstdint>

namespace megalith {

enum class Tier : uint8_t { host, device };
inline constexpr int kTiers = 2;

}  // namespace megalith

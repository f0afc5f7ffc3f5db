// Whose memory bytes are in: the host's, or that of the device on which blocks are computed.
#pragma once
#include <cstdint>

namespace megalith {

enum class Tier : uint8_t { host, device };
inline constexpr int kTiers = 2;

}  // namespace megalith

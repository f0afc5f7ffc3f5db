// CRC-32C (Castagnoli, RFC 3720 appendix B.4), and the masked form that TFRecord files store.
#pragma once
#include <cstdint>
#include <string_view>

namespace megalith {

uint32_t crc32c(std::string_view data);

// A CRC of data that contains CRCs is weak, so TFRecord rotates the stored CRC and adds an offset.
inline uint32_t masked_crc32c(std::string_view data) {
  uint32_t crc = crc32c(data);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

}  // namespace megalith

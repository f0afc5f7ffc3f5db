#include "report/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace megalith {
namespace {

TEST(Crc32c, KnownAnswersOfRfc3720AppendixB4) {
  std::string up, down;
  for (int i = 0; i < 32; i++) up += static_cast<char>(i), down += static_cast<char>(31 - i);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(up), 0x46DD794Eu);
  EXPECT_EQ(crc32c(down), 0x113FDB5Cu);
}

TEST(Crc32c, CheckValueOfTheCatalogueAndTheEmptyString) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, MaskRotatesByFifteenAndAdds) {
  EXPECT_EQ(masked_crc32c(""), 0xA282EAD8u);
  // 0xE3069283 rotated right by 15 is 0x2507C60D.
  EXPECT_EQ(masked_crc32c("123456789"), 0x2507C60Du + 0xA282EAD8u);
}

}  // namespace
}  // namespace megalith

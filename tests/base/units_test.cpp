#include "base/units.h"

#include <gtest/gtest.h>

namespace megalith {

TEST(Units, SizesTakeBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("4GiB"), Bytes(4ll << 30));
  EXPECT_EQ(parse_bytes("1.5 GiB"), Bytes(3ll << 29));
  EXPECT_EQ(parse_bytes("512MB"), Bytes(512'000'000));
  EXPECT_EQ(parse_bytes("9007199254740993"), Bytes(9007199254740993));  // not exact in double
}

TEST(Units, CountsTakeThousands) {
  EXPECT_EQ(parse_count("50M"), 50'000'000);
  EXPECT_EQ(parse_count("1.5B"), 1'500'000'000);
  EXPECT_EQ(parse_count("1_000"), 1000);
}

TEST(Units, NonsenseIsNotAQuantity) {
  for (const char* text : {"", "GiB", "4 apples", "1.2.3", "-1GiB", "1e40", "99999999999TB", "0.3"})
    EXPECT_FALSE(parse_count(text).has_value() && parse_bytes(text).has_value()) << text;
  EXPECT_FALSE(parse_count("0.3"));
}

TEST(Units, PrintsBackForPeople) {
  EXPECT_EQ(show(Bytes(5ll << 28)), "1.25 GiB");
  for (int64_t size : {int64_t{1}, int64_t{1023}, int64_t{1025}, int64_t{85249229}, int64_t{5} << 28, (int64_t{5} << 28) + 1, int64_t{1} << 50}) {
    const std::string enough = show_at_least(Bytes(size));
    ASSERT_TRUE(parse_bytes(enough)) << enough;
    EXPECT_GE(*parse_bytes(enough), Bytes(size)) << enough;
    EXPECT_LE(parse_bytes(enough)->value, size + size / 50) << enough;
  }
  EXPECT_EQ(show_count(124'439'808), "124M");
  EXPECT_EQ(show_seconds(125), "2m 05s");
}

}  // namespace megalith

#include "comm/sums.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <vector>

namespace megalith {

// Shows a type in the names of tests.
static void PrintTo(Element element, std::ostream* out) { *out << (element == Element::bfloat16 ? "bfloat16" : "float16"); }

namespace {

// The value of a 16-bit float with `exponent_bits` bits of exponent, according to the definition.
double value_of(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    using Limits = std::numeric_limits<double>;
    return mantissa != 0 ? Limits::quiet_NaN() : sign * Limits::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

int exponent_bits(Element element) { return element == Element::bfloat16 ? 8 : 5; }

uint16_t narrow(Element element, float value) {
  uint16_t bits = 0;
  end_sum(element, &bits, &value, 1);
  return bits;
}

class Halves : public testing::TestWithParam<Element> {};

TEST_P(Halves, WidenExactly) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(all.size());
  begin_sum(GetParam(), wide.data(), all.data(), std::ssize(all));
  for (size_t i = 0; i < all.size(); i++) {
    const double expected = value_of(all[i], exponent_bits(GetParam()));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(wide[i], expected) << i;
      ASSERT_EQ(std::signbit(wide[i]), std::signbit(expected)) << i;
    }
  }
}

// Between two neighbouring values, the nearer one is chosen, and ties go to the even one. Each value itself is not
// changed.
TEST_P(Halves, NarrowToNearestEven) {
  const int exponent = exponent_bits(GetParam());
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent) - 1) << (15 - exponent));
  for (uint16_t low = 0; low + 1 < infinity; low++) {
    const uint16_t high = low + 1;
    const float a = static_cast<float>(value_of(low, exponent)), b = static_cast<float>(value_of(high, exponent));
    const float middle = static_cast<float>((static_cast<double>(a) + b) / 2);
    ASSERT_EQ(narrow(GetParam(), a), low);
    ASSERT_EQ(narrow(GetParam(), -a), low | 0x8000);
    if (static_cast<double>(middle) * 2 != static_cast<double>(a) + b) continue;  // the middle is not a float
    ASSERT_EQ(narrow(GetParam(), middle), low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(narrow(GetParam(), std::nextafter(middle, 0.0f)), low) << low;
    ASSERT_EQ(narrow(GetParam(), std::nextafter(middle, std::numeric_limits<float>::infinity())), high) << low;
  }
  EXPECT_EQ(narrow(GetParam(), std::numeric_limits<float>::infinity()), infinity);
  EXPECT_EQ(narrow(GetParam(), std::numeric_limits<float>::max()), infinity);
  EXPECT_TRUE(std::isnan(value_of(narrow(GetParam(), std::nanf("")), exponent)));
}

INSTANTIATE_TEST_SUITE_P(Types, Halves, testing::Values(Element::bfloat16, Element::float16));

// Sums are taken in the order of the sources, and a destination may be any of the sources.
TEST(Sums, InOrderAndInPlace) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (size_t members : {1u, 2u, 3u, 5u}) {
    for (int64_t count : {0, 1, 17, 4096, 10007}) {
      std::vector<std::vector<float>> values(members, std::vector<float>(static_cast<size_t>(count)));
      for (auto& one : values) for (float& v : one) v = draw(random);
      std::vector<float> expected = values[0];
      for (size_t m = 1; m < members; m++) for (size_t i = 0; i < expected.size(); i++) expected[i] += values[m][i];
      for (size_t into = 0; into <= members; into++) {  // `members` itself means: into all
        auto copies = values;
        std::vector<const std::byte*> sources;
        std::vector<std::byte*> destinations;
        for (size_t m = 0; m < members; m++) {
          sources.push_back(reinterpret_cast<std::byte*>(copies[m].data()));
          if (m == into || into == members) destinations.push_back(reinterpret_cast<std::byte*>(copies[m].data()));
        }
        sum(Element::float32, sources, destinations, count);
        for (size_t m = 0; m < members; m++) {
          const auto& right = m == into || into == members ? expected : values[m];
          ASSERT_TRUE(right.empty() || std::memcmp(copies[m].data(), right.data(), right.size() * sizeof(float)) == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace megalith

#include "base/dtype.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"

namespace megalith {
namespace {

// Returns the value of a 16-bit float in double, without the conversions under test.
double meaning(uint16_t bits, int exponent_bits) {
  int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1),
      mantissa = bits & ((1 << mantissa_bits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  double unit = std::ldexp(1.0, std::max(exponent, 1) - bias - mantissa_bits);
  return sign * unit * (exponent ? mantissa + (1 << mantissa_bits) : mantissa);
}

template <class Widen, class Narrow>
void every_value_survives(int exponent_bits, Widen widen, Narrow narrow) {
  for (uint32_t i = 0; i < 65536; i++) {
    uint16_t bits = static_cast<uint16_t>(i);
    double expected = meaning(bits, exponent_bits);
    float wide = widen(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide) && std::isnan(widen(narrow(wide)))) << bits;
    } else {
      ASSERT_EQ(wide, expected) << bits;
      ASSERT_EQ(narrow(wide), bits);
    }
  }
}

// Expects the nearest of the two neighbours, or the even one for a tie. Infinity counts as the value after the largest one.
template <class Narrow>
void rounds_to_nearest_even(float value, int exponent_bits, Narrow narrow) {
  uint16_t got = narrow(value);
  auto finite = [&](uint16_t bits) {
    double m = meaning(bits, exponent_bits);
    return std::isinf(m) ? 2 * meaning(bits - 1, exponent_bits) - meaning(bits - 2, exponent_bits) : m;
  };
  double error = std::abs(finite(got) - value);
  uint16_t magnitude = got & 0x7FFF,
           infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
  if (magnitude == infinity && std::abs(value) >= std::abs(finite(got))) return;
  for (int step : {-1, 1}) {
    if (magnitude + step < 0 || magnitude + step > infinity) continue;
    uint16_t other = static_cast<uint16_t>((got & 0x8000) | (magnitude + step));
    double other_error = std::abs(finite(other) - value);
    ASSERT_LE(error, other_error) << value;
    ASSERT_TRUE(error < other_error || got % 2 == 0) << value;
  }
}

TEST(DType, EveryHalfFloatMeansWhatItsBitsSayAndComesBack) {
  every_value_survives(5, f32_from_f16, f16_from_f32);
  every_value_survives(8, f32_from_bf16, bf16_from_f32);
}

TEST(DType, NarrowingRoundsToNearestTiesToEven) {
  Philox random(1, RandomUse::test, 1);
  for (uint64_t i = 0; i < 200000; i++) {
    float value = std::bit_cast<float>(random.bits(i));
    if (!std::isfinite(value)) continue;
    rounds_to_nearest_even(value, 8, bf16_from_f32);
    rounds_to_nearest_even(value, 5, f16_from_f32);
    rounds_to_nearest_even(std::ldexp(random.uniform(i), static_cast<int>(i % 44) - 27), 5, f16_from_f32);
  }
  for (uint32_t i = 0; i < 0x7C00; i++) {  // the middle between two float16 values
    double middle = (meaning(static_cast<uint16_t>(i), 5) +
                     (i == 0x7BFF ? 65536.0 : meaning(static_cast<uint16_t>(i + 1), 5))) /
                    2;
    rounds_to_nearest_even(static_cast<float>(middle), 5, f16_from_f32);
  }
}

TEST(DType, SpansConvertAtAnyAlignment) {
  std::vector<float> values{1.5f, -2.25f, 0.0f, 65504.0f}, back(4);
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<std::byte> bytes(1 + 4 * static_cast<size_t>(size_of(dtype)));
    std::span<std::byte> odd = std::span(bytes).subspan(1);
    from_f32(dtype, values, odd);
    to_f32(dtype, odd, back);
    if (dtype == DType::bf16) back[3] -= 32;  // 65536 - 32 = 65504: the one value here that bfloat16 rounds
    EXPECT_EQ(back, values) << safetensors_name(dtype);
  }
  std::array<double, 1> wide{0.1};
  std::array<float, 1> narrow{};
  to_f32(DType::f64, std::as_bytes(std::span(wide)), narrow);
  EXPECT_EQ(narrow[0], 0.1f);
}

TEST(DType, NamesAreThoseOfTheFormat) {
  EXPECT_EQ(safetensors_name(DType::bf16), "BF16");
  EXPECT_EQ(dtype_from_safetensors("BOOL"), DType::boolean);
  EXPECT_EQ(dtype_from_safetensors("F8_E4M3"), std::nullopt);
  EXPECT_EQ(size_of(DType::i64), 8);
}

}  // namespace
}  // namespace megalith

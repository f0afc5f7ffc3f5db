#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/kernels/simd.h"

namespace megalith::kernels {
namespace {

// Returns the distance in units in the last place of the correct result.
double ulps(float got, double wanted) {
  auto rounded = static_cast<float>(wanted);
  double unit = std::nextafter(rounded, std::numeric_limits<float>::infinity()) - static_cast<double>(rounded);
  return std::abs(got - wanted) / unit;
}

TEST(ExpFast, StaysWithinTwoUnitsInTheLastPlace) {
  double worst = 0;
  for (int64_t i = 0; i <= 2'000'000; i++) {
    float x = static_cast<float>(-87.0 + 175.0 * static_cast<double>(i) / 2e6);
    worst = std::max(worst, ulps(exp_fast(x), std::exp(static_cast<double>(x))));
  }
  RecordProperty("worst_ulps", std::to_string(worst));
  EXPECT_LE(worst, 2.0);
}

TEST(ExpFast, IsAccurateAroundTheBordersOfItsReduction) {
  // The remainder is largest where the rounded multiple of ln 2 changes.
  for (int n = -125; n <= 126; n++) {
    float border = static_cast<float>((n + 0.5) * std::log(2.0));
    for (float x : {std::nextafter(border, -1e9f), border, std::nextafter(border, 1e9f)})
      EXPECT_LE(ulps(exp_fast(x), std::exp(static_cast<double>(x))), 2.0) << x;
  }
}

TEST(ExpFast, ZeroIsOneAndMaskedScoresVanish) {
  EXPECT_EQ(exp_fast(0.0f), 1.0f);
  EXPECT_EQ(exp_fast(-1e4f), 0.0f);
  EXPECT_EQ(exp_fast(-std::numeric_limits<float>::infinity()), 0.0f);
}

TEST(ExpFast, PassesNotANumberOn) {
  EXPECT_TRUE(std::isnan(exp_fast(std::numeric_limits<float>::quiet_NaN())));
}

TEST(SigmoidFast, SaturatesWithoutOverflow) {
  for (float x : {-1e30f, -200.0f, -88.5f, -20.0f, -1.0f, 0.0f, 1.0f, 20.0f, 88.5f, 200.0f, 1e30f}) {
    double wanted = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
    EXPECT_NEAR(sigmoid_fast(x), wanted, 3e-7 * wanted + 1e-37) << x;
  }
}

}  // namespace
}  // namespace megalith::kernels

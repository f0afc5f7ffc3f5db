#include "model/kernels/rms_norm.h"

#include <gtest/gtest.h>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

constexpr double kEps = 1e-5;

struct Reference {
  std::vector<double> y, gx, gw;
};

// The definition and its derivative, element by element.
Reference reference(const at::Tensor& x_NC, const at::Tensor& w_C, const at::Tensor& g_NC) {
  const auto rows = static_cast<size_t>(x_NC.size(0)), n = static_cast<size_t>(x_NC.size(1));
  std::vector<double> x = doubles(x_NC), w = doubles(w_C), g = doubles(g_NC);
  Reference out{std::vector<double>(rows * n), std::vector<double>(rows * n), std::vector<double>(n)};
  for (size_t r = 0; r < rows; r++) {
    double squares = 0, dot = 0;
    for (size_t i = 0; i < n; i++) squares += x[r * n + i] * x[r * n + i];
    double root = std::sqrt(squares / static_cast<double>(n) + kEps);
    for (size_t i = 0; i < n; i++) dot += g[r * n + i] * w[i] * x[r * n + i];
    for (size_t i = 0; i < n; i++) {
      size_t at = r * n + i;
      out.y[at] = x[at] / root * w[i];
      out.gx[at] = g[at] * w[i] / root - x[at] * dot / (static_cast<double>(n) * root * root * root);
      out.gw[i] += g[at] * x[at] / root;
    }
  }
  return out;
}

class RmsNormSizes : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(RmsNormSizes, AgreesWithTheDefinitionInFloat64AndWithItsAtenForm) {
  auto [rows, width] = GetParam();
  at::Tensor x = normal({rows, width}, 1, at::kFloat), w = normal({width}, 2, at::kFloat);
  at::Tensor g = normal({rows, width}, 3, at::kFloat);
  Reference wanted = reference(x, w, g);
  auto [y, rstd] = rms_norm(x, w, kEps);
  auto [gx, gw] = rms_norm_backward(g, x, rstd, w);
  EXPECT_LT(distance(y, wanted.y), 1e-6);
  EXPECT_LT(distance(gx, wanted.gx), 1e-6);
  EXPECT_LT(distance(gw, wanted.gw), 2e-6);
  auto [y_aten, rstd_aten] = rms_norm_aten(x, w, kEps);
  auto [gx_aten, gw_aten] = rms_norm_backward_aten(g, x, rstd_aten, w);
  EXPECT_LT(distance(rstd, rstd_aten), 1e-6);
  EXPECT_LT(distance(y, y_aten), 1e-6);
  EXPECT_LT(distance(gx, gx_aten), 1e-6);
  EXPECT_LT(distance(gw, gw_aten), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(OddAndEven, RmsNormSizes,
                         testing::Values(std::pair{1, 4}, std::pair{3, 7}, std::pair{63, 64}, std::pair{64, 65},
                                         std::pair{65, 33}, std::pair{200, 768}, std::pair{2, 5001}));

TEST(RmsNorm, TheResidualsShareIsAdded) {
  for (auto type : {at::kFloat, at::kDouble}) {
    at::Tensor x = normal({70, 33}, 1, type), w = normal({33}, 2, type), g = normal({70, 33}, 3, type);
    at::Tensor onto = normal({70, 33}, 4, type), rstd = std::get<1>(rms_norm(x, w, kEps));
    at::Tensor alone = std::get<0>(rms_norm_backward(g, x, rstd, w));
    EXPECT_TRUE(std::get<0>(rms_norm_backward(g, x, rstd, w, onto)).equal(alone.add_(onto)));
  }
}

TEST(RmsNorm, DoubleRunsTheAtenFormExactly) {
  at::Tensor x = normal({5, 11}, 1), w = normal({11}, 2), g = normal({5, 11}, 3);
  Reference wanted = reference(x, w, g);
  auto [y, rstd] = rms_norm(x, w, kEps);
  auto [gx, gw] = rms_norm_backward(g, x, rstd, w);
  EXPECT_LT(distance(y, wanted.y), 1e-14);
  EXPECT_LT(distance(gx, wanted.gx), 1e-14);
  EXPECT_LT(distance(gw, wanted.gw), 1e-14);
}

TEST(RmsNorm, SixteenBitInputsAreNormalisedInFloat32) {
  for (auto type : {at::kBFloat16, at::kHalf}) {
    at::Tensor x = normal({9, 40}, 1, type), w = normal({40}, 2, type), g = normal({9, 40}, 3, type);
    Reference wanted = reference(x, w, g);
    auto [y, rstd] = rms_norm(x, w, kEps);
    auto [gx, gw] = rms_norm_backward(g, x, rstd, w);
    double rounding = type == at::kHalf ? 2e-3 : 1.6e-2;
    EXPECT_EQ(y.scalar_type(), type);
    EXPECT_EQ(rstd.scalar_type(), at::kFloat);
    EXPECT_LT(distance(y, wanted.y), rounding);
    EXPECT_LT(distance(gx, wanted.gx), rounding);
    EXPECT_LT(distance(gw, wanted.gw), 1e-5);
  }
}

TEST(RmsNorm, TinyAndHugeRowsStayFinite) {
  at::Tensor x = normal({4, 50}, 1, at::kFloat), w = normal({50}, 2, at::kFloat), g = normal({4, 50}, 3, at::kFloat);
  x[0].zero_();
  x[1].mul_(1e-20);
  x[2].mul_(1e15);
  Reference wanted = reference(x, w, g);
  auto [y, rstd] = rms_norm(x, w, kEps);
  auto [gx, gw] = rms_norm_backward(g, x, rstd, w);
  EXPECT_LT(distance(y, wanted.y), 1e-6);
  EXPECT_LT(distance(gx, wanted.gx), 1e-6);
  EXPECT_LT(distance(gw, wanted.gw), 1e-6);
}

TEST(RmsNorm, NoRowsAtAllGiveAZeroWeightGradient) {
  // With no target in a micro-batch, the head's norm gets no rows.
  at::Tensor x = normal({0, 8}, 1, at::kFloat), w = normal({8}, 2, at::kFloat);
  auto [y, rstd] = rms_norm(x, w, kEps);
  auto [gx, gw] = rms_norm_backward(x, x, rstd, w);
  EXPECT_EQ(y.numel(), 0);
  EXPECT_EQ(gx.numel(), 0);
  EXPECT_EQ(dot(gw, gw), 0);
}

}  // namespace
}  // namespace megalith::kernels

#include "model/kernels/swiglu.h"

#include <gtest/gtest.h>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

struct Reference {
  std::vector<double> h, g;
};

Reference reference(const at::Tensor& gate_up_N2F, const at::Tensor& g_NF) {
  const auto rows = static_cast<size_t>(g_NF.size(0)), n = static_cast<size_t>(g_NF.size(1));
  std::vector<double> in = doubles(gate_up_N2F), g = doubles(g_NF);
  Reference out{std::vector<double>(rows * n), std::vector<double>(2 * rows * n)};
  for (size_t r = 0; r < rows; r++)
    for (size_t i = 0; i < n; i++) {
      size_t gate_at = 2 * r * n + i, up_at = gate_at + n, at = r * n + i;
      double gate = in[gate_at], up = in[up_at], s = 1 / (1 + std::exp(-gate));
      out.h[at] = gate * s * up;
      out.g[gate_at] = g[at] * up * (s + gate * s * (1 - s));
      out.g[up_at] = g[at] * gate * s;
    }
  return out;
}

// (gradient of gate and up, h), as the kernel writes them.
std::pair<at::Tensor, at::Tensor> backward(const at::Tensor& in, const at::Tensor& g,
                                           void (*kernel)(at::Tensor&, at::Tensor&) = swiglu_backward) {
  at::Tensor both = in.clone(), other = g.clone();
  kernel(both, other);
  return {both, other};
}

class SwigluSizes : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(SwigluSizes, AgreesWithTheDefinitionInFloat64AndWithItsAtenForm) {
  auto [rows, width] = GetParam();
  at::Tensor in = normal({rows, 2 * width}, 1, at::kFloat).mul_(4), g = normal({rows, width}, 2, at::kFloat);
  Reference wanted = reference(in, g);
  EXPECT_LT(distance(swiglu(in), wanted.h), 1e-6);
  EXPECT_LT(distance(backward(in, g).first, wanted.g), 1e-6);
  EXPECT_LT(distance(swiglu(in), swiglu_aten(in)), 1e-6);
  EXPECT_LT(distance(backward(in, g).first, backward(in, g, swiglu_backward_aten).first), 1e-6);
  EXPECT_LT(distance(backward(in, g).second, wanted.h), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(OddAndEven, SwigluSizes,
                         testing::Values(std::pair{1, 1}, std::pair{3, 5}, std::pair{7, 64}, std::pair{33, 171},
                                         std::pair{100, 513}));

TEST(Swiglu, DoubleRunsTheAtenFormExactly) {
  at::Tensor in = normal({4, 14}, 1), g = normal({4, 7}, 2);
  Reference wanted = reference(in, g);
  EXPECT_LT(distance(swiglu(in), wanted.h), 1e-14);
  EXPECT_LT(distance(backward(in, g).first, wanted.g), 1e-14);
}

TEST(Swiglu, SaturatesAtLargeGatesOfEitherSign) {
  at::Tensor in = normal({2, 6}, 1, at::kFloat), g = normal({2, 3}, 2, at::kFloat);
  in[0][0] = 500.0;
  in[0][1] = -500.0;
  in[0][2] = -88.5;
  in[1][0] = -87.4;
  Reference wanted = reference(in, g);
  EXPECT_LT(distance(swiglu(in), wanted.h), 1e-6);
  EXPECT_LT(distance(backward(in, g).first, wanted.g), 1e-6);
}

}  // namespace
}  // namespace megalith::kernels

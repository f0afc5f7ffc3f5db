#include "model/kernels/layer_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

constexpr double kEps = 1e-5;

struct Reference {
  std::vector<double> y, gx, gw, gb;
};

// The definition and its derivative, element by element.
Reference reference(const at::Tensor& x_NC, const at::Tensor& w_C, const at::Tensor& b_C, const at::Tensor& g_NC,
                    const at::Tensor& onto_NC) {
  const auto rows = static_cast<size_t>(x_NC.size(0)), n = static_cast<size_t>(x_NC.size(1));
  const std::vector<double> x = doubles(x_NC), w = doubles(w_C), b = doubles(b_C), g = doubles(g_NC),
                            onto = doubles(onto_NC);
  Reference out{std::vector<double>(rows * n), std::vector<double>(rows * n), std::vector<double>(n),
                std::vector<double>(n)};
  for (size_t r = 0; r < rows; r++) {
    const auto count = static_cast<double>(n);
    double mean = 0, variance = 0, sum = 0, dot = 0;
    for (size_t i = 0; i < n; i++) mean += x[r * n + i] / count;
    for (size_t i = 0; i < n; i++) variance += (x[r * n + i] - mean) * (x[r * n + i] - mean) / count;
    const double root = std::sqrt(variance + kEps);
    for (size_t i = 0; i < n; i++) {
      sum += g[r * n + i] * w[i];
      dot += g[r * n + i] * w[i] * (x[r * n + i] - mean) / root;
    }
    for (size_t i = 0; i < n; i++) {
      const size_t at = r * n + i;
      const double hat = (x[at] - mean) / root;
      out.y[at] = hat * w[i] + b[i];
      out.gx[at] = (g[at] * w[i] - sum / count - hat * dot / count) / root + onto[at];
      out.gw[i] += g[at] * hat;
      out.gb[i] += g[at];
    }
  }
  return out;
}

void expect_near(const LayerNormed& got, const LayerNormGradients& back, const Reference& wanted, double bound) {
  EXPECT_LT(distance(got.y_NC, wanted.y), bound);
  EXPECT_LT(distance(back.gx_NC, wanted.gx), bound);
  EXPECT_LT(distance(back.gw_C, wanted.gw), 2 * bound);
  EXPECT_LT(distance(back.gb_C, wanted.gb), 2 * bound);
}

class LayerNormSizes : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(LayerNormSizes, AgreesWithTheDefinitionInFloat64AndWithItsAtenForm) {
  auto [rows, width] = GetParam();
  at::Tensor x = normal({rows, width}, 1, at::kFloat).add_(3), w = normal({width}, 2, at::kFloat);
  at::Tensor b = normal({width}, 3, at::kFloat), g = normal({rows, width}, 4, at::kFloat);
  at::Tensor onto = normal({rows, width}, 5, at::kFloat);
  const Reference wanted = reference(x, w, b, g, onto);
  const LayerNormed ours = layer_norm(x, w, b, kEps), aten = layer_norm_aten(x, w, b, kEps);
  expect_near(ours, layer_norm_backward(g, x, ours.mean_N, ours.rstd_N, w, onto), wanted, 2e-6);
  expect_near(aten, layer_norm_backward_aten(g, x, aten.mean_N, aten.rstd_N, w, onto), wanted, 2e-6);
  const Reference alone = reference(x, w, b, g, onto.clone().zero_());
  EXPECT_LT(distance(layer_norm_backward(g, x, ours.mean_N, ours.rstd_N, w, {}).gx_NC, alone.gx), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(OddAndEven, LayerNormSizes,
                         testing::Values(std::pair{1, 4}, std::pair{3, 7}, std::pair{63, 64}, std::pair{64, 65},
                                         std::pair{65, 33}, std::pair{200, 768}, std::pair{2, 5001}));

TEST(LayerNormKernel, OtherTypesRunTheAtenForm) {
  at::Tensor x = normal({5, 11}, 1), w = normal({11}, 2), b = normal({11}, 3), g = normal({5, 11}, 4),
             onto = normal({5, 11}, 5);
  const LayerNormed got = layer_norm(x, w, b, kEps);
  expect_near(got, layer_norm_backward(g, x, got.mean_N, got.rstd_N, w, onto), reference(x, w, b, g, onto), 1e-13);
}

TEST(LayerNormKernel, BitsDoNotDependOnTheThreads) {
  at::Tensor x = normal({200, 96}, 1, at::kFloat), w = normal({96}, 2, at::kFloat), b = normal({96}, 3, at::kFloat);
  std::vector<LayerNormGradients> all;
  for (int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const LayerNormed got = layer_norm(x, w, b, kEps);
    all.push_back(layer_norm_backward(x, got.y_NC, got.mean_N, got.rstd_N, w, x));
    EXPECT_TRUE(all.back().gx_NC.equal(all[0].gx_NC));
    EXPECT_TRUE(all.back().gw_C.equal(all[0].gw_C));
    EXPECT_TRUE(all.back().gb_C.equal(all[0].gb_C));
  }
  at::set_num_threads(2);
}

TEST(LayerNormKernel, NoRowsAtAllGiveZeroWeightGradients) {
  // With no target in a micro-batch, the head's norm gets no rows.
  at::Tensor x = normal({0, 8}, 1, at::kFloat), w = normal({8}, 2, at::kFloat), b = normal({8}, 3, at::kFloat);
  const LayerNormed got = layer_norm(x, w, b, kEps);
  const LayerNormGradients back = layer_norm_backward(x, x, got.mean_N, got.rstd_N, w, {});
  EXPECT_EQ(got.y_NC.numel(), 0);
  EXPECT_EQ(dot(back.gw_C, back.gw_C) + dot(back.gb_C, back.gb_C), 0);
}

}  // namespace
}  // namespace megalith::kernels

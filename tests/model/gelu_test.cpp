#include "model/kernels/gelu.h"

#include <gtest/gtest.h>

#include "model/support.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {

// Shows a form in the names of tests.
static void PrintTo(GeluForm form, std::ostream* out) { *out << (form == GeluForm::erf ? "erf" : "tanh"); }

namespace {
using namespace testing_support;

struct Reference {
  std::vector<double> y, g;
};

Reference reference(const at::Tensor& h_NF, const at::Tensor& g_NF, GeluForm form) {
  Reference out{doubles(h_NF), doubles(g_NF)};
  for (size_t i = 0; i < out.y.size(); i++) {
    const double x = out.y[i], root = std::sqrt(2 / M_PI);
    double share, slope;
    if (form == GeluForm::erf) {
      share = 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
      slope = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    } else {
      const double t = std::tanh(root * (x + 0.044715 * x * x * x));
      share = 0.5 * (1 + t);
      slope = 0.5 * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
    }
    out.y[i] = x * share;
    out.g[i] *= share + x * slope;
  }
  return out;
}

class Gelu : public testing::TestWithParam<GeluForm> {};

TEST_P(Gelu, AgreesWithTheDefinitionInFloat64AndWithItsAtenForm) {
  for (auto [rows, width] : {std::pair{1, 1}, {3, 5}, {33, 171}, {100, 513}}) {
    at::Tensor h = normal({rows, width}, 1, at::kFloat).mul_(3), g = normal({rows, width}, 2, at::kFloat);
    Reference wanted = reference(h, g, GetParam());
    EXPECT_LT(distance(gelu(h, GetParam()), wanted.y), 1e-6);
    EXPECT_LT(distance(gelu_aten(h, GetParam()), wanted.y), 1e-6);
    at::Tensor y = h.clone(), back = g.clone(), y2 = h.clone(), back2 = g.clone();
    gelu_backward(y, back, GetParam());
    gelu_backward_aten(y2, back2, GetParam());
    EXPECT_LT(distance(y, wanted.y), 1e-6);
    EXPECT_LT(distance(back, wanted.g), 1e-6);
    EXPECT_LT(distance(y2, wanted.y), 1e-6);
    EXPECT_LT(distance(back2, wanted.g), 1e-6);
  }
}

TEST_P(Gelu, EveryValueIsWithinAFewRoundings) {
  at::Tensor h = normal({1, 4096}, 1, at::kFloat).mul_(20), g = tensor::ones(h.sizes(), h.options());
  Reference wanted = reference(h, g, GetParam());
  gelu_backward(h, g, GetParam());
  std::vector<double> y = doubles(h), slope = doubles(g);
  for (size_t i = 0; i < y.size(); i++) {
    EXPECT_NEAR(y[i], wanted.y[i], 4e-7 * std::max(1.0, std::abs(wanted.y[i])));
    EXPECT_NEAR(slope[i], wanted.g[i], 1e-6);
  }
}

TEST_P(Gelu, DoubleRunsTheAtenFormExactly) {
  at::Tensor h = normal({4, 7}, 1), g = normal({4, 7}, 2);
  Reference wanted = reference(h, g, GetParam());
  EXPECT_LT(distance(gelu(h, GetParam()), wanted.y), 1e-14);
  gelu_backward(h, g, GetParam());
  EXPECT_LT(distance(g, wanted.g), 1e-14);
}

INSTANTIATE_TEST_SUITE_P(Forms, Gelu, testing::Values(GeluForm::erf, GeluForm::tanh),
                         [](const auto& test) { return test.param == GeluForm::erf ? "Erf" : "Tanh"; });

}  // namespace
}  // namespace megalith::kernels

#include "model/kernels/few_rows.h"

#include <gtest/gtest.h>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

std::vector<double> reference(const at::Tensor& x_RI, const at::Tensor& w, MatrixOrder order, const at::Tensor& bias) {
  const int64_t rows = x_RI.size(0), in = x_RI.size(1), out = w.size(order == MatrixOrder::out_in ? 0 : 1);
  std::vector<double> x = doubles(x_RI), m = doubles(w), y;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t o = 0; o < out; o++) {
      double sum = bias.defined() ? bias[o].item<double>() : 0;
      for (int64_t i = 0; i < in; i++)
        sum += x[static_cast<size_t>(r * in + i)] *
               m[static_cast<size_t>(order == MatrixOrder::out_in ? o * in + i : i * out + o)];
      y.push_back(sum);
    }
  return y;
}

struct Size {
  int64_t rows, in, out;
};

void PrintTo(const Size& s, std::ostream* stream) { *stream << s.rows << " rows, " << s.in << " to " << s.out; }

class FewRows : public testing::TestWithParam<Size> {};

TEST_P(FewRows, IsTheProductInFloat64) {
  auto [rows, in, out] = GetParam();
  at::Tensor x = normal({rows, in}, 1, at::kFloat), bias = normal({out}, 2, at::kFloat);
  for (MatrixOrder order : {MatrixOrder::out_in, MatrixOrder::in_out}) {
    at::Tensor w = order == MatrixOrder::out_in ? normal({out, in}, 3, at::kFloat) : normal({in, out}, 3, at::kFloat);
    ASSERT_TRUE(takes_few_rows(x, w));
    EXPECT_LT(distance(few_rows_product(x, w, order, bias), reference(x, w, order, bias)), 2e-6);
    EXPECT_LT(distance(few_rows_product(x, w, order, {}), reference(x, w, order, {})), 2e-6);
  }
}

TEST_P(FewRows, ARowIsTheSameBitsAloneAndAmongOthers) {
  auto [rows, in, out] = GetParam();
  at::Tensor x = normal({rows, in}, 1, at::kFloat), bias = normal({out}, 2, at::kFloat);
  for (MatrixOrder order : {MatrixOrder::out_in, MatrixOrder::in_out}) {
    at::Tensor w = order == MatrixOrder::out_in ? normal({out, in}, 3, at::kFloat) : normal({in, out}, 3, at::kFloat);
    at::Tensor all = few_rows_product(x, w, order, bias);
    for (int64_t r = 0; r < rows; r++)
      EXPECT_TRUE(few_rows_product(x.narrow(0, r, 1), w, order, bias).equal(all.narrow(0, r, 1))) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(OddAndEven, FewRows,
                         testing::Values(Size{1, 1, 1}, Size{1, 5, 3}, Size{2, 16, 16}, Size{3, 33, 7}, Size{4, 64, 130},
                                         Size{5, 100, 17}, Size{7, 257, 300}, Size{32, 48, 96}, Size{1, 300, 257}));

TEST(FewRows, LeavesTheRestToMatrixProducts) {
  at::Tensor w = normal({8, 8}, 1, at::kFloat);
  EXPECT_FALSE(takes_few_rows(normal({kFewRows + 1, 8}, 2, at::kFloat), w));
  EXPECT_FALSE(takes_few_rows(normal({1, 8}, 2), normal({8, 8}, 1)));
  EXPECT_FALSE(takes_few_rows(normal({1, 8}, 2, at::kFloat), w.t()));
}

}  // namespace
}  // namespace megalith::kernels

#include "model/kernels/product.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <array>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

// Operands, plain or transposed, and the same numbers in float64.
struct Numbers {
  at::Tensor a, b, c, row, onto;
  Numbers(int64_t m, int64_t n, int64_t k, bool turn_a, bool turn_b)
      : a(turn_a ? normal({k, m}, 1, at::kFloat).t() : normal({m, k}, 1, at::kFloat)),
        b(turn_b ? normal({n, k}, 2, at::kFloat).t() : normal({k, n}, 2, at::kFloat)),
        c(normal({m, n}, 3, at::kFloat)),
        row(normal({n}, 4, at::kFloat)),
        onto(normal({m, n}, 5, at::kFloat)) {}
  at::Tensor wanted() const { return a.to(at::kDouble).mm(b.to(at::kDouble)); }
};

class Product : public testing::TestWithParam<int> {
  void SetUp() override { at::set_num_threads(GetParam()); }
  void TearDown() override { at::set_num_threads(2); }
};

TEST_P(Product, AgreesWithFloat64InEveryFormAndShape) {
  const std::vector<std::array<int64_t, 3>> shapes{{1, 1, 1},      {3, 5, 7},       {64, 48, 300}, {129, 97, 130},
                                                   {512, 33, 100}, {17, 1000, 129}, {200, 777, 64}};
  for (auto [m, n, k] : shapes)
    for (bool turn_a : {false, true})
      for (bool turn_b : {false, true}) {
        const Numbers x(m, n, k, turn_a, turn_b);
        const at::Tensor wanted = x.wanted();
        EXPECT_LT(distance(product(x.a, x.b), wanted), 1e-5) << m << " " << n << " " << k << turn_a << turn_b;
        EXPECT_LT(distance(product(x.a, x.b, x.row), wanted.add(x.row)), 1e-5);
        EXPECT_LT(distance(product(x.a, x.b, {}, x.onto), wanted.add(x.onto)), 1e-5);
        EXPECT_LT(distance(product(x.a, x.b, x.row, x.onto), wanted.add(x.row).add(x.onto)), 1e-5);
        at::Tensor c = x.c.clone();
        product_added(x.a, x.b, c);
        EXPECT_LT(distance(c, wanted.add(x.c)), 1e-5);
        product_into(x.a, x.b, c);
        EXPECT_LT(distance(c, wanted), 1e-5);
        product_into(x.a, x.b, c, x.row);
        EXPECT_LT(distance(c, wanted.add(x.row)), 1e-5);
      }
}

TEST_P(Product, WritesIntoRowsOfALargerMatrixAndNowhereElse) {
  const Numbers x(150, 130, 90, false, true);
  at::Tensor large = normal({170, 200}, 6, at::kFloat), before = large.clone();
  at::Tensor c = large.narrow(0, 10, 150).narrow(1, 40, 130);
  product_into(x.a, x.b, c);
  EXPECT_LT(distance(c, x.wanted()), 1e-5);
  c.copy_(before.narrow(0, 10, 150).narrow(1, 40, 130));
  EXPECT_TRUE(large.equal(before));
}

TEST_P(Product, TakesOtherTypesToo) {
  const Numbers x(40, 30, 20, true, false);
  const at::Tensor a = x.a.to(at::kDouble), b = x.b.to(at::kDouble), onto = x.onto.to(at::kDouble);
  EXPECT_LT(distance(product(a, b, x.row.to(at::kDouble), onto), x.wanted().add(x.row).add(onto)), 1e-14);
}

TEST_P(Product, SameBitsEveryTime) {
  const Numbers x(300, 500, 200, true, false);
  EXPECT_TRUE(product(x.a, x.b, x.row).equal(product(x.a, x.b, x.row)));
}

INSTANTIATE_TEST_SUITE_P(Threads, Product, testing::Values(1, 2, 3, 6));

TEST(ProductCut, BlocksCoverTheResultOnceAndAreNearlyEqual) {
  for (int64_t threads : {1, 2, 3, 4, 6, 7, 16, 64})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{1024, 2304}, {512, 50257}, {50257, 768}, {100, 100}, {9, 5000}}) {
      const Grid grid = cut(m, n, 768, threads);
      EXPECT_EQ(grid.rows * grid.columns, threads);
      EXPECT_GE(grid.rows * grid.row_step, m);
      EXPECT_GE(grid.columns * grid.column_step, n);
    }
  // The longer side is cut in two. If the other side were cut, the longer operand would be packed twice.
  EXPECT_EQ(cut(1024, 3072, 768, 2).columns, 2);
  EXPECT_EQ(cut(1024, 768, 3072, 2).rows, 2);
  EXPECT_EQ(cut(16, 16, 16, 8).rows * cut(16, 16, 16, 8).columns, 1);  // too small for a second thread
}

}  // namespace
}  // namespace megalith::kernels

#include "model/kernels/rope.h"

#include <gtest/gtest.h>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

// Positions first, first + 1, ... of sequences of `length` rows.
std::vector<int64_t> run_of(int64_t rows, int64_t length, int64_t first) {
  std::vector<int64_t> positions(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; r++) positions[static_cast<size_t>(r)] = first + r % length;
  return positions;
}

// Reference: rotates pairs (i, i + D/2) by position * theta^(-2i/D), in float64.
std::vector<double> reference(const at::Tensor& x_NX, int64_t heads, int64_t dim, int64_t length, int64_t first,
                              double theta, double direction) {
  std::vector<double> x = doubles(x_NX);
  const int64_t rows = x_NX.size(0), width = x_NX.size(1);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t i = 0; i < dim / 2; i++) {
        double& a = x[static_cast<size_t>(r * width + h * dim + i)];
        double& b = x[static_cast<size_t>(r * width + h * dim + i + dim / 2)];
        double power = -2.0 * static_cast<double>(i) / static_cast<double>(dim);
        double angle = direction * static_cast<double>(first + r % length) * std::pow(theta, power);
        double u = a * std::cos(angle) - b * std::sin(angle), v = b * std::cos(angle) + a * std::sin(angle);
        a = u;
        b = v;
      }
  return x;
}

TEST(Rope, TurnsTheFirstHeadsByPositionAndLeavesTheRest) {
  const int64_t heads = 5, dim = 6, length = 7, sequences = 3;
  at::Tensor x = normal({sequences * length, (heads + 2) * dim}, 1, at::kFloat), turned = x.clone();
  rope_in_place(turned, heads, dim, run_of(turned.size(0), length, 0), {10000}, false);
  EXPECT_LT(distance(turned, reference(x, heads, dim, length, 0, 10000, 1)), 1e-6);
  EXPECT_TRUE(turned.narrow(1, heads * dim, 2 * dim).equal(x.narrow(1, heads * dim, 2 * dim)));
}

TEST(Rope, ContinuesAtAnyFirstPosition) {
  at::Tensor x = normal({4, 2 * 8}, 1, at::kFloat), turned = x.clone();
  rope_in_place(turned, 2, 8, run_of(turned.size(0), 4, 1000), {500000}, false);
  // Angles are float32, as in Hugging Face. At position 1000 their rounding error is about 1000 * 2^-24.
  EXPECT_LT(distance(turned, reference(x, 2, 8, 4, 1000, 500000, 1)), 1e-4);
}

TEST(Rope, TurnsEveryRowByItsOwnPosition) {
  at::Tensor x = normal({3, 2 * 8}, 1, at::kFloat), together = x.clone();
  const std::vector<int64_t> positions{4, 0, 2};
  rope_in_place(together, 2, 8, positions, {10000}, false);
  for (int64_t r = 0; r < 3; r++) {
    at::Tensor alone = x.narrow(0, r, 1).clone();
    rope_in_place(alone, 2, 8, run_of(1, 1, positions[static_cast<size_t>(r)]), {10000}, false);
    EXPECT_TRUE(together.narrow(0, r, 1).equal(alone));
  }
}

TEST(Rope, BackwardIsTheInverseAndTheTranspose) {
  at::Tensor x = normal({12, 24}, 1), y = normal({12, 24}, 2), turned = x.clone(), back = y.clone();
  rope_in_place(turned, 3, 8, run_of(turned.size(0), 6, 5), {10000}, false);
  rope_in_place(back, 3, 8, run_of(back.size(0), 6, 5), {10000}, true);
  EXPECT_NEAR(dot(turned, y), dot(x, back), 1e-9);
  rope_in_place(turned, 3, 8, run_of(turned.size(0), 6, 5), {10000}, true);
  EXPECT_LT(distance(turned, x), 1e-6);  // cosine and sine are float32: the sum of their squares is 1 within this error
}

TEST(Rope, DoublesKeepTheirPrecision) {
  // At position 0 there is no rotation: every bit must stay, also those that float32 does not have.
  at::Tensor x = normal({1, 8}, 1).div_(3), turned = x.clone();
  rope_in_place(turned, 1, 8, run_of(turned.size(0), 1, 0), {10000}, false);
  EXPECT_TRUE(turned.equal(x));
}

TEST(Rope, SixteenBitsRoundOnce) {
  for (auto type : {at::kBFloat16, at::kHalf}) {
    at::Tensor x = normal({10, 16}, 1, type), turned = x.clone();
    rope_in_place(turned, 2, 8, run_of(turned.size(0), 5, 0), {10000}, false);
    EXPECT_LT(distance(turned, reference(x, 2, 8, 5, 0, 10000, 1)), type == at::kHalf ? 1e-3 : 8e-3);
  }
}

}  // namespace
}  // namespace megalith::kernels

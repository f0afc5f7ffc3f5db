#include "model/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <limits>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

struct Result {
  std::vector<double> loss, gradient;
};

Result reference(const at::Tensor& logits_RV, const at::Tensor& targets_R, double scale) {
  const auto rows = static_cast<size_t>(logits_RV.size(0)), n = static_cast<size_t>(logits_RV.size(1));
  std::vector<double> x = doubles(logits_RV);
  Result out{std::vector<double>(rows), std::vector<double>(rows * n)};
  for (size_t r = 0; r < rows; r++) {
    double largest = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) largest = std::max(largest, x[r * n + i]);
    for (size_t i = 0; i < n; i++) sum += std::exp(x[r * n + i] - largest);
    auto target = static_cast<size_t>(targets_R.const_data_ptr<int64_t>()[r]);
    out.loss[r] = std::log(sum) + largest - x[r * n + target];
    for (size_t i = 0; i < n; i++)
      out.gradient[r * n + i] = scale * (std::exp(x[r * n + i] - largest) / sum - (i == target ? 1 : 0));
  }
  return out;
}

using Kernel = void (*)(at::Tensor&, const at::Tensor&, at::Tensor&, bool, double);

Result run(Kernel kernel, const at::Tensor& logits_RV, const at::Tensor& targets_R, double scale) {
  at::Tensor work = logits_RV.clone(), loss = tensor::empty({logits_RV.size(0)}, logits_RV.options());
  kernel(work, targets_R, loss, true, scale);
  return {doubles(loss), doubles(work)};
}

class CrossEntropySizes : public testing::TestWithParam<std::tuple<int64_t, int64_t, double>> {};

TEST_P(CrossEntropySizes, AgreesWithTheDefinitionInFloat64AndWithItsAtenForm) {
  auto [rows, vocab, spread] = GetParam();
  at::Tensor logits = normal({rows, vocab}, 1, at::kFloat).mul_(spread), targets = ids(rows, vocab, 2);
  Result wanted = reference(logits, targets, 0.25), ours = run(cross_entropy, logits, targets, 0.25);
  Result aten = run(cross_entropy_aten, logits, targets, 0.25);
  EXPECT_LT(distance(ours.loss, wanted.loss), 1e-6);
  EXPECT_LT(distance(ours.gradient, wanted.gradient), 1e-6);
  EXPECT_LT(distance(ours.loss, aten.loss), 1e-6);
  EXPECT_LT(distance(ours.gradient, aten.gradient), 1e-6);
}

// Spreads up to logits of some hundreds, for which a plain exp would overflow.
INSTANTIATE_TEST_SUITE_P(OddEvenAndWide, CrossEntropySizes,
                         testing::Values(std::tuple{1, 2, 1.0}, std::tuple{5, 7, 1.0}, std::tuple{17, 1009, 3.0},
                                         std::tuple{3, 4095, 1.0}, std::tuple{3, 4096, 1.0},
                                         std::tuple{3, 4097, 1.0}, std::tuple{6, 257, 200.0}));

TEST(CrossEntropy, ARowOfAQuarterMillionLogitsKeepsItsPrecision) {
  // All logits are equal: the sum of 262,147 ones. A naive float32 sum of small terms gets this wrong.
  const int64_t vocab = 262147;
  at::Tensor logits = normal({2, vocab}, 1, at::kFloat);
  logits[0].fill_(1.0);
  at::Tensor targets = ids(2, vocab, 2);
  Result wanted = reference(logits, targets, 1.0), ours = run(cross_entropy, logits, targets, 1.0);
  EXPECT_NEAR(ours.loss[0], std::log(static_cast<double>(vocab)), 1e-6 * ours.loss[0]);
  EXPECT_LT(distance(ours.loss, wanted.loss), 2e-7);
  // Relative to each probability, not only to the largest.
  for (size_t i = 0; i < wanted.gradient.size(); i += 9973)
    EXPECT_NEAR(ours.gradient[i], wanted.gradient[i], 1e-6 * std::abs(wanted.gradient[i]) + 1e-12);
}

TEST(CrossEntropy, LogitsBeyondTheRangeOfExpDoNotOverflow) {
  at::Tensor logits = normal({3, 100}, 1, at::kFloat);
  logits[0][3] = 1e4;
  logits[1][5] = -1e4;
  logits[2].add_(1e6);
  at::Tensor targets = ids(3, 100, 2);
  targets[0] = 4;
  targets[1] = 5;
  Result wanted = reference(logits, targets, 1.0), ours = run(cross_entropy, logits, targets, 1.0);
  EXPECT_LT(distance(ours.loss, wanted.loss), 1e-6);
  EXPECT_LT(distance(ours.gradient, wanted.gradient), 1e-6);
}

TEST(CrossEntropy, EachRowOfTheGradientSumsToZero) {
  at::Tensor logits = normal({8, 333}, 1, at::kFloat), targets = ids(8, 333, 2);
  Result ours = run(cross_entropy, logits, targets, 1.0);
  for (size_t r = 0; r < 8; r++) {
    double sum = 0;
    for (size_t i = 0; i < 333; i++) sum += ours.gradient[r * 333 + i];
    EXPECT_NEAR(sum, 0, 1e-6);
  }
}

TEST(CrossEntropy, WithoutGradientTheLogitsStayAndTheLossIsTheSame) {
  at::Tensor logits = normal({4, 5000}, 1, at::kFloat), work = logits.clone(), targets = ids(4, 5000, 2);
  at::Tensor loss = tensor::empty({4}, logits.options());
  cross_entropy(work, targets, loss, false, 1.0);
  EXPECT_TRUE(work.equal(logits));
  EXPECT_EQ(doubles(loss), run(cross_entropy, logits, targets, 1.0).loss);
}

TEST(CrossEntropy, NotANumberAnywhereInARowReachesItsLoss) {
  // Skipping a bad step depends on this. The maximum of a row alone would miss a NaN.
  for (int64_t at : {0, 1, 4999}) {
    at::Tensor logits = normal({2, 5000}, 1, at::kFloat), targets = ids(2, 5000, 2);
    logits[1][at] = std::numeric_limits<float>::quiet_NaN();
    Result ours = run(cross_entropy, logits, targets, 1.0);
    EXPECT_TRUE(std::isfinite(ours.loss[0]));
    EXPECT_TRUE(std::isnan(ours.loss[1])) << at;
  }
}

TEST(CrossEntropy, DoubleRunsTheAtenFormExactly) {
  at::Tensor logits = normal({5, 31}, 1), targets = ids(5, 31, 2);
  Result wanted = reference(logits, targets, 3.0), ours = run(cross_entropy, logits, targets, 3.0);
  EXPECT_LT(distance(ours.loss, wanted.loss), 1e-14);
  EXPECT_LT(distance(ours.gradient, wanted.gradient), 1e-14);
}

}  // namespace
}  // namespace megalith::kernels

#include "model/layers/contrastive_loss.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/support.h"

namespace megalith {
namespace {
using namespace testing_support;

// The sum of the losses by the definition, in float64.
double reference(const std::vector<double>& x, size_t width, const std::vector<uint64_t>& texts, const Comparison& form) {
  const auto columns = static_cast<size_t>(form.columns), pairs = texts.size() / columns;
  const auto cosine = [&](size_t a, size_t b) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t c = 0; c < width; c++) {
      ab += x[a * width + c] * x[b * width + c];
      aa += x[a * width + c] * x[a * width + c];
      bb += x[b * width + c] * x[b * width + c];
    }
    return ab / std::sqrt(aa * bb);
  };
  const auto loss_of = [&](size_t query, size_t own, size_t first, size_t last) {
    double sum = 0;
    for (size_t pair = 0; pair < pairs; pair++)
      for (size_t column = first; column <= last; column++) {
        const size_t other = pair * columns + column;
        if (other != own && (texts[other] == texts[own] || texts[other] == texts[query])) continue;
        sum += std::exp(cosine(query, other) / form.temperature);
      }
    return std::log(sum) - cosine(query, own) / form.temperature;
  };
  double loss = 0;
  for (size_t pair = 0; pair < pairs; pair++) {
    const size_t anchor = pair * columns, positive = anchor + 1;
    const double forth = loss_of(anchor, positive, 1, columns - 1);
    loss += form.symmetric ? (forth + loss_of(positive, anchor, 0, 0)) / 2 : forth;
  }
  return loss;
}

std::vector<uint64_t> different(int64_t count) {
  std::vector<uint64_t> texts(static_cast<size_t>(count));
  std::iota(texts.begin(), texts.end(), 100);
  return texts;
}

struct Shape {
  int64_t pairs;
  Comparison form;
  friend void PrintTo(const Shape& s, std::ostream* out) {
    *out << s.pairs << " pairs of " << s.form.columns << ", temperature " << s.form.temperature
         << (s.form.symmetric ? ", symmetric" : "");
  }
};

class ContrastiveShapes : public testing::TestWithParam<Shape> {};

TEST_P(ContrastiveShapes, LossAndGradientAreThoseOfTheDefinition) {
  const auto& [pairs, form] = GetParam();
  const int64_t sequences = pairs * form.columns, width = 12;
  const at::Tensor x = normal({sequences, width}, 1, at::kFloat);
  // Some texts occur twice: as the positive of another pair, and as two equal anchors.
  std::vector<uint64_t> texts = different(sequences);
  if (pairs > 3) texts[static_cast<size_t>(3 * form.columns + 1)] = texts[1];
  if (pairs > 2) texts[static_cast<size_t>(2 * form.columns)] = texts[0];
  at::Tensor g;
  const LossSums sums = contrastive_loss(x, texts, form, 0.5, &g);
  const std::vector<double> values = doubles(x);
  const double wanted = reference(values, width, texts, form);
  EXPECT_EQ(sums.targets, pairs);
  EXPECT_NEAR(sums.loss, wanted, 2e-6 * std::max(1.0, wanted));
  EXPECT_EQ(contrastive_loss(x, texts, form, 0.5, nullptr).loss, sums.loss) << "without a gradient";
  // Along a few random directions, by differences of the definition.
  for (uint64_t item = 2; item < 6; item++) {
    const at::Tensor direction = normal({sequences, width}, item);
    const std::vector<double> d = doubles(direction);
    std::vector<double> up = values, down = values;
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < d.size(); i++) {
      up[i] += kStep * d[i];
      down[i] -= kStep * d[i];
    }
    const double slope = (reference(up, width, texts, form) - reference(down, width, texts, form)) / (2 * kStep);
    EXPECT_NEAR(dot(g, direction), 0.5 * slope, 2e-5 * std::max(1.0, std::abs(slope))) << "direction " << item;
  }
}

INSTANTIATE_TEST_SUITE_P(PlainHardSymmetricAndChunked, ContrastiveShapes,
                         testing::Values(Shape{1, {.columns = 2}}, Shape{5, {.columns = 2}}, Shape{5, {.columns = 2, .temperature = 1}},
                                         Shape{7, {.columns = 4}}, Shape{6, {.columns = 2, .symmetric = true}},
                                         Shape{6, {.columns = 3, .temperature = 0.1, .symmetric = true}},
                                         Shape{300, {.columns = 3}}, Shape{257, {.columns = 2, .symmetric = true}}));

TEST(ContrastiveLoss, EqualTextsAreNoNegatives) {
  const Comparison form{.columns = 2, .temperature = 0.2};
  at::Tensor x = normal({6, 8}, 1, at::kFloat);
  // Three pairs with one text: no pair has a negative, so nothing is left to lose.
  EXPECT_EQ(contrastive_loss(x, std::vector<uint64_t>(6, 7), form, 1, nullptr).loss, 0);
  EXPECT_GT(contrastive_loss(x, different(6), form, 1, nullptr).loss, 0);
}

TEST(ContrastiveLoss, TheLengthOfAVectorDoesNotMatter) {
  const Comparison form{.columns = 2};
  const at::Tensor x = normal({8, 8}, 1, at::kFloat);
  at::Tensor longer = x.clone();
  longer.select(0, 3).mul_(16);
  at::Tensor g;
  const auto texts = different(8);
  EXPECT_NEAR(contrastive_loss(longer, texts, form, 1, &g).loss, contrastive_loss(x, texts, form, 1, nullptr).loss, 1e-5);
  EXPECT_NEAR(dot(g.select(0, 3), longer.select(0, 3)), 0, 1e-4) << "the gradient has no part along the vector";
}

}  // namespace
}  // namespace megalith

#include "model/kernels/dropout.h"

#include <gtest/gtest.h>

#include "model/layers/dropout.h"
#include "model/support.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {
using namespace testing_support;
using kernels::DropoutSite;

DropoutSite site(double probability) {
  return {.seed = 5, .use = RandomUse::residual_dropout, .item = 9, .step = 3, .first_element = 0,
          .probability = probability};
}

std::vector<float> factors(const DropoutSite& s, int64_t begin, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  kernels::dropout_factors(s, begin, n, out.data());
  return out;
}

TEST(Dropout, DropsTheAskedShareAndKeepsTheMean) {
  const int64_t n = 1 << 20;
  for (double p : {0.01, 0.1, 0.5, 0.9}) {
    double dropped = 0, sum = 0;
    for (float f : factors(site(p), 0, n)) {
      ASSERT_TRUE(f == 0 || f == static_cast<float>(1 / (1 - p))) << f;
      dropped += f == 0;
      sum += f;
    }
    double deviation = std::sqrt(p * (1 - p) / static_cast<double>(n));  // standard deviation of the share
    EXPECT_NEAR(dropped / static_cast<double>(n), p, 5 * deviation) << p;
    EXPECT_NEAR(sum / static_cast<double>(n), 1, 5 * deviation / (1 - p)) << p;
  }
}

TEST(Dropout, NeighboursFallIndependently) {
  const int64_t n = 1 << 20;
  std::vector<float> f = factors(site(0.5), 0, n);
  for (size_t lag : {1, 2, 3, 4, 64, 4096}) {
    double both = 0;
    for (size_t i = lag; i < f.size(); i++) both += f[i] == 0 && f[i - lag] == 0;
    EXPECT_NEAR(both / static_cast<double>(n - static_cast<int64_t>(lag)), 0.25, 5 * std::sqrt(0.1875 / n)) << lag;
  }
}

TEST(Dropout, AnElementsFactorIsItsOwnPhiloxNumber) {
  // Checks the definition, without the vectorised code.
  DropoutSite s = site(0.3);
  Philox random(s.seed, s.use, s.item, static_cast<uint64_t>(s.step));
  std::vector<float> f = factors(s, 0, 1000);
  for (size_t i = 0; i < f.size(); i++) {
    bool falls = static_cast<double>(random.bits(i)) < std::nearbyint(0.3 * 4294967296.0);
    EXPECT_EQ(f[i] == 0, falls) << i;
  }
}

TEST(Dropout, DoesNotDependOnTheCut) {
  const int64_t n = 10'007;
  std::vector<float> whole = factors(site(0.2), 0, n);
  for (int64_t cut : {1, 2, 3, 4, 5, 4095, 4096, 9999}) {
    std::vector<float> left = factors(site(0.2), 0, cut), right = factors(site(0.2), cut, n - cut);
    left.insert(left.end(), right.begin(), right.end());
    EXPECT_EQ(left, whole) << cut;
    DropoutSite moved = site(0.2);  // the same elements as a separate tensor
    moved.first_element = cut;
    EXPECT_EQ(factors(moved, 0, n - cut), right) << cut;
  }
}

TEST(Dropout, SitesStepsAndSeedsDiffer) {
  DropoutSite a = site(0.5), step = a, item = a, seed = a, use = a;
  step.step++;
  item.item++;
  seed.seed++;
  use.use = RandomUse::attention_dropout;
  std::vector<float> base = factors(a, 0, 4096);
  for (const DropoutSite& other : {step, item, seed, use}) {
    std::vector<float> f = factors(other, 0, 4096);
    double same = 0;
    for (size_t i = 0; i < f.size(); i++) same += f[i] == base[i];
    EXPECT_NEAR(same / 4096, 0.5, 5 * 0.5 / 64);
  }
}

TEST(Dropout, InPlaceMultipliesByTheFactorsInEveryType) {
  for (auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    at::Tensor x = normal({97, 101}, 1, type), y = x.clone();
    kernels::dropout_in_place(y, site(0.5));  // a factor of 2: exact in every type
    std::vector<double> before = doubles(x), after = doubles(y);
    std::vector<float> f = factors(site(0.5), 0, x.numel());
    for (size_t i = 0; i < after.size(); i++) ASSERT_EQ(after[i], before[i] * f[i]) << i;
  }
}

TEST(Dropout, ForwardAndBackwardShareTheirMask) {
  DropPlace place{0.4, RandomUse::residual_dropout, 2, 1};
  Pass pass;
  pass.sequences = 2;
  pass.length = 5;
  pass.dropout = true;
  pass.step = 11;
  pass.first_sequence = 3;
  at::Tensor x = tensor::ones({10, 7}, at::kFloat), g = tensor::ones({10, 7}, at::kFloat);
  at::Tensor back = place.backward(g, pass);
  place.drop(x, pass);
  EXPECT_TRUE(x.equal(back));
  EXPECT_TRUE(g.equal(tensor::ones({10, 7}, at::kFloat)));  // backward must not change g: other code still uses it
}

TEST(Dropout, ASequenceFallsTheSameInAnyMicroBatch) {
  DropPlace place{0.4, RandomUse::residual_dropout, 2, 0};
  Pass pass;
  pass.sequences = 4;
  pass.length = 5;
  pass.dropout = true;
  at::Tensor whole = tensor::ones({20, 7}, at::kFloat), part = tensor::ones({10, 7}, at::kFloat);
  place.drop(whole, pass);
  pass.sequences = 2;
  pass.first_sequence = 2;
  place.drop(part, pass);
  EXPECT_TRUE(part.equal(whole.narrow(0, 10, 10)));
}

TEST(Dropout, IsOffOutsideOfTraining) {
  DropPlace place{0.4, RandomUse::residual_dropout, 0, 0};
  Pass pass;
  pass.sequences = pass.length = 3;
  at::Tensor x = tensor::ones({9, 7}, at::kFloat);
  place.drop(x, pass);
  EXPECT_TRUE(x.equal(tensor::ones({9, 7}, at::kFloat)));
}

TEST(Dropout, ThePlacesOfALayerAndOfItsNeighbourDiffer) {
  Pass pass;
  pass.sequences = 1;
  pass.length = 64;
  pass.dropout = true;
  std::vector<at::Tensor> masks;
  for (int64_t layer = 0; layer < 3; layer++)
    for (int64_t place = 0; place < 2; place++) {
      masks.push_back(tensor::ones({64, 8}, at::kFloat));
      DropPlace{0.5, RandomUse::residual_dropout, layer, place}.drop(masks.back(), pass);
    }
  for (size_t i = 0; i < masks.size(); i++)
    for (size_t j = 0; j < i; j++) EXPECT_FALSE(masks[i].equal(masks[j])) << i << " " << j;
}

}  // namespace
}  // namespace megalith

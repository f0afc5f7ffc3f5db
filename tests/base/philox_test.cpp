#include "base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace megalith {

TEST(Philox, ValuesDependOnTheKeyAndTheIndexOnly) {
  Philox a(1, RandomUse::test, 2, 3), again(1, RandomUse::test, 2, 3);
  for (uint64_t i : {0ull, 5ull, 1ull << 40}) EXPECT_EQ(a.block(i), again.block(i));
  EXPECT_NE(a.block(0), Philox(2, RandomUse::test, 2, 3).block(0));
  EXPECT_NE(a.block(0), Philox(1, RandomUse::masking, 2, 3).block(0));
  EXPECT_NE(a.block(0), Philox(1, RandomUse::test, 3, 3).block(0));
  EXPECT_NE(a.block(0), Philox(1, RandomUse::test, 2, 4).block(0));
}

TEST(Philox, UniformsFillTheUnitInterval) {
  Philox random(7, RandomUse::test, 0);
  std::vector<int> bins(16);
  const int n = 160'000;
  for (int i = 0; i < n; i++) bins[static_cast<size_t>(random.uniform(i) * 16)]++;
  double chi = 0;
  for (int count : bins) chi += std::pow(count - n / 16.0, 2) / (n / 16.0);
  EXPECT_LT(chi, 37.7);  // 15 degrees of freedom, p = 0.001
}

TEST(Philox, NormalsHaveUnitMoments) {
  Philox random(7, RandomUse::test, 1);
  const int n = 200'000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < n; i++) {
    double x = random.normal(i);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(fourths / n, 3, 0.1);
}

TEST(Philox, BelowStaysBelow) {
  Philox random(3, RandomUse::test, 0);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 500; i++) seen.insert(random.below(i, 7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(*seen.rbegin(), 6u);
}

}  // namespace megalith

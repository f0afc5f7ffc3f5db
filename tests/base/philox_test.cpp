#include "base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace megalith {

// Known answers published with the generator (Random123's kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesThePublishedNumbers) {
  using Four = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox::philox4x32(0, 0, 0), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(Philox::philox4x32(ones, ones, ones), (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::philox4x32(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

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

TEST(Philox, BelowStaysBelow) {
  Philox random(3, RandomUse::test, 0);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 500; i++) seen.insert(random.below(i, 7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(*seen.rbegin(), 6u);
}

}  // namespace megalith

#include "planner/rank_columns.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Columns = std::vector<RankColumn>;

TEST(RankColumns, OneStandsForAllRanksOfOneHost) {
  EXPECT_EQ(columns_of(1, 1, {}), (Columns{{{0}, 1}}));
  EXPECT_EQ(columns_of(4, 1, {}), (Columns{{{0}, 4}}));
  EXPECT_EQ(columns_of(6, 3, {}), (Columns{{{0, 0, 0}, 2}}));
}

TEST(RankColumns, OneHostStandsForAllThatAreAlike) {
  const std::vector<int32_t> two_each{0, 0, 1, 1, 2, 2, 3, 3};
  EXPECT_EQ(columns_of(8, 1, two_each), (Columns{{{0}, 2}}));
  EXPECT_EQ(columns_of(8, 2, two_each), (Columns{{{0, 2}, 2}}));  // each stage is on two hosts
  EXPECT_EQ(columns_of(8, 4, two_each), (Columns{{{0, 1, 2, 3}, 2}}));
}

TEST(RankColumns, HostsThatAreNotAlikeStay) {
  EXPECT_EQ(columns_of(3, 1, std::vector<int32_t>{0, 0, 1}), (Columns{{{0}, 2}, {{1}, 1}}));
  // Three ranks on host 0, two ranks per stage: both columns use host 0, and only one also uses host 1.
  EXPECT_EQ(columns_of(4, 2, std::vector<int32_t>{0, 0, 0, 1}), (Columns{{{0, 0}, 1}, {{0, 1}, 1}}));
}

}  // namespace
}  // namespace megalith

#include "data/blend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace megalith {
namespace {

const std::vector<std::vector<double>> kWeights{
    {1},      {1, 1}, {0.7, 0.3}, {3, 2, 1}, {0.5, 0.25, 0.25}, {0.98, 0.01, 0.01}, {1, 2, 3, 4, 5, 6, 7, 8},
    {1, 1e-5}};

}  // namespace

TEST(Blend, IndicesOfEachSetCountUpByOne) {
  for (const auto& weights : kWeights) {
    for (uint64_t seed : {1u, 2u, 3u}) {
      Blend blend(weights, seed);
      std::vector<int64_t> next(weights.size());
      for (int64_t position = 0; position < 20'000; position++) {
        for (size_t set = 0; set < weights.size(); set++) ASSERT_EQ(blend.drawn(set, position), next[set]);
        Blend::Place place = blend.at(position);
        ASSERT_EQ(place.index, next[place.set]++) << "position " << position;
      }
    }
  }
}

// Tests all windows, not only those from the beginning: the samples drawn between two positions.
TEST(Blend, SharesAreHeldWithinOnePercentInEveryWindow) {
  std::mt19937_64 random(5);
  for (const auto& weights : kWeights) {
    double total = 0;
    for (double weight : weights) total += weight;
    for (uint64_t seed : {1u, 7u}) {
      Blend blend(weights, seed);
      for (int i = 0; i < 300; i++) {
        const auto begin = static_cast<int64_t>(random() % (uint64_t{1} << (10 + i % 45)));
        for (size_t set = 0; set < weights.size(); set++) {
          const double share = weights[set] / total;
          const auto window = static_cast<int64_t>(1000 / share);  // long enough for about a thousand samples
          const auto drawn = static_cast<double>(blend.drawn(set, begin + window) - blend.drawn(set, begin));
          ASSERT_NEAR(drawn / static_cast<double>(window), share, 0.01 * share)
              << "set " << set << " from " << begin;
        }
      }
    }
  }
}

TEST(Blend, AnyPositionIsAsNearAsTheFirst) {
  Blend blend(std::vector{0.6, 0.4}, 1);
  for (int64_t position : {int64_t{1'000'000'000'000}, int64_t{1} << 32, (int64_t{1} << 61) + 12345}) {
    int64_t sum = blend.drawn(0, position) + blend.drawn(1, position);
    EXPECT_EQ(sum, position);
    for (int64_t p = position - 50; p < position + 50; p++) {
      Blend::Place place = blend.at(p);
      EXPECT_EQ(blend.drawn(place.set, p + 1), place.index + 1);
      EXPECT_EQ(blend.drawn(1 - place.set, p + 1), blend.drawn(1 - place.set, p));
    }
  }
}

TEST(Blend, TheSeedMovesTheBeginning) {
  Blend one(std::vector{1.0, 1.0}, 1), again(std::vector{1.0, 1.0}, 1), two(std::vector{1.0, 1.0}, 2);
  int same = 0;
  for (int64_t p = 0; p < 100; p++) {
    EXPECT_EQ(one.at(p), again.at(p));
    same += one.at(p) == two.at(p);
  }
  EXPECT_LT(same, 100);
}

}  // namespace megalith

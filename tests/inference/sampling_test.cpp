#include "inference/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/philox.h"

namespace megalith {
namespace {

const std::vector<float> kLogits{1.0f, 3.0f, -2.0f, 3.0f, 0.5f, 2.0f};

TEST(Sampling, TheLikeliestIsTheFirstOfEquals) {
  EXPECT_EQ(sample_token(kLogits, {}, {.temperature = 0}, 0.99), 1);
  // A penalty moves it: 3 / 2 is less than the other 3.
  const std::vector<int64_t> said{1};
  EXPECT_EQ(sample_token(kLogits, said, {.temperature = 0, .repetition_penalty = 2}, 0), 3);
}

TEST(Sampling, TopKKeepsWhatEqualsTheLast) {
  auto kept = candidates(kLogits, {}, {.top_k = 1});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].id, 1);
  EXPECT_EQ(kept[1].id, 3);
  EXPECT_DOUBLE_EQ(kept[0].probability, 0.5);
}

TEST(Sampling, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  EXPECT_EQ(candidates(logits, {}, {.top_p = 0.49}).size(), 1u);
  EXPECT_EQ(candidates(logits, {}, {.top_p = 0.79}).size(), 2u);
  EXPECT_EQ(candidates(logits, {}, {.top_p = 0.81}).size(), 3u);
  EXPECT_EQ(candidates(logits, {}, {.top_p = 0}).size(), 1u);
}

TEST(Sampling, DrawsFollowTheProbabilities) {
  Philox random(3, RandomUse::test, 0);
  for (const SamplingSettings& settings :
       {SamplingSettings{}, SamplingSettings{.temperature = 0.5, .top_k = 4, .top_p = 0.9}}) {
    const int draws = 20000;
    std::map<int64_t, int> counts;
    for (uint64_t n = 0; n < draws; n++) counts[sample_token(kLogits, {}, settings, random.uniform(n))]++;
    for (const Candidate& c : candidates(kLogits, {}, settings)) {
      double expected = c.probability * draws;
      EXPECT_NEAR(counts[c.id], expected, 5 * std::sqrt(expected) + 1) << c.id;
      counts.erase(c.id);
    }
    EXPECT_TRUE(counts.empty());
  }
}

}  // namespace
}  // namespace megalith

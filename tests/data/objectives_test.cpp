#include "data/objectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "data/batch.h"

namespace megalith {
namespace {

// Ids below 5 are special, 4 is the mask token. Odd ids continue the word before them.
VocabularyFacts vocabulary() {
  VocabularyFacts facts;
  facts.vocab_size = 1000;
  facts.mask_token = 4;
  facts.is_special = [](int64_t id) { return id < 5; };
  facts.starts_word = [](int64_t id) { return id % 2 == 0; };
  return facts;
}

struct Sequence {
  std::vector<int64_t> ids, targets;
  int64_t prefix = -1;
  bool operator==(const Sequence&) const = default;
};

Sequence run(const TrainingObjective& objective, const std::vector<int64_t>& tokens, SampleKey key = {}) {
  Sequence out;
  out.ids.resize(tokens.size() - 1, -7);
  out.targets.resize(tokens.size() - 1, -7);
  objective.write(tokens, key, {out.ids, out.targets, objective.row().has_prefix ? &out.prefix : nullptr});
  return out;
}

std::vector<int64_t> some_tokens(int64_t n, uint64_t seed = 1) {
  Philox random(seed, RandomUse::test, 9);
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < n; i++)
    tokens.push_back(5 + static_cast<int64_t>(random.below(static_cast<uint64_t>(i), 995)));
  return tokens;
}

ObjectiveSettings masked(double fraction = 0.15, bool whole_words = false) {
  return {.kind = Objective::masked, .mask_fraction = fraction, .whole_words = whole_words};
}

}  // namespace

TEST(CausalObjective, EveryPositionPredictsTheNextToken) {
  auto objective = make_objective({}, vocabulary(), 3);
  EXPECT_FALSE(objective->row().has_prefix);
  Sequence out = run(*objective, {10, 11, 12, 13});
  EXPECT_EQ(out.ids, (std::vector<int64_t>{10, 11, 12}));
  EXPECT_EQ(out.targets, (std::vector<int64_t>{11, 12, 13}));
}

TEST(PrefixObjective, OnlyTokensOutsideThePrefixAreTargets) {
  auto objective = make_objective({.kind = Objective::prefix}, vocabulary(), 5);
  ASSERT_TRUE(objective->row().has_prefix);
  const std::vector<int64_t> tokens{10, 11, 12, 13, 14, 15};
  std::map<int64_t, int> lengths;
  for (uint64_t sample = 0; sample < 4000; sample++) {
    Sequence out = run(*objective, tokens, {.seed = 3, .sample = sample});
    ASSERT_GE(out.prefix, 1);
    ASSERT_LE(out.prefix, 4);
    lengths[out.prefix]++;
    for (int64_t p = 0; p < 5; p++) {
      EXPECT_EQ(out.ids[p], 10 + p);
      // Position p's target is token p + 1. It is already visible if it is inside the prefix.
      EXPECT_EQ(out.targets[p], p + 1 < out.prefix ? kNoTarget : 11 + p);
    }
  }
  for (int64_t length = 1; length <= 4; length++) EXPECT_NEAR(lengths[length], 1000, 130) << length;
}

TEST(PrefixObjective, SequencesOfOneTokenAreRefused) {
  EXPECT_THROW(make_objective({.kind = Objective::prefix}, vocabulary(), 1), UserError);
}

TEST(MaskedObjective, AFixedShareOfTheTokensAreTargetsAndTheRestIsUntouched) {
  auto objective = make_objective(masked(), vocabulary(), 200);
  for (uint64_t sample = 0; sample < 50; sample++) {
    const auto tokens = some_tokens(201, sample);
    Sequence out = run(*objective, tokens, {.seed = 1, .sample = sample});
    int targets = 0;
    for (size_t p = 0; p < 200; p++) {
      if (out.targets[p] == kNoTarget) {
        EXPECT_EQ(out.ids[p], tokens[p]);
      } else {
        EXPECT_EQ(out.targets[p], tokens[p]);
        targets++;
      }
    }
    EXPECT_EQ(targets, 30);  // 15% of 200
  }
}

TEST(MaskedObjective, TargetsAreMaskedReplacedOrKeptEightyTenTen) {
  auto objective = make_objective(masked(), vocabulary(), 200);
  double mask = 0, kept = 0, random = 0, all = 0;
  std::set<int64_t> drawn;
  for (uint64_t sample = 0; sample < 1000; sample++) {
    const auto tokens = some_tokens(201, sample);
    Sequence out = run(*objective, tokens, {.seed = 1, .sample = sample});
    for (size_t p = 0; p < 200; p++) {
      if (out.targets[p] == kNoTarget) continue;
      all++;
      if (out.ids[p] == 4)
        mask++;
      else if (out.ids[p] == tokens[p])
        kept++;
      else
        random++, drawn.insert(out.ids[p]);
    }
  }
  ASSERT_EQ(all, 30'000);
  EXPECT_NEAR(mask / all, 0.8, 0.01);  // more than four standard deviations
  EXPECT_NEAR(kept / all, 0.1, 0.008);
  EXPECT_NEAR(random / all, 0.1, 0.008);
  EXPECT_GT(drawn.size(), 900u);  // 3,000 draws of 1,000 ids: about 950 different ones
}

TEST(MaskedObjective, EveryPositionIsChosenEquallyOften) {
  auto objective = make_objective(masked(), vocabulary(), 20);
  const auto tokens = some_tokens(21);
  std::vector<int> counts(20);
  const int n = 4000;
  for (uint64_t sample = 0; sample < n; sample++) {
    Sequence out = run(*objective, tokens, {.seed = 2, .sample = sample});
    for (size_t p = 0; p < 20; p++) counts[p] += out.targets[p] != kNoTarget;
  }
  const double expected = n * 3 / 20.0;
  for (int count : counts) EXPECT_NEAR(count, expected, 4.5 * std::sqrt(expected * 0.85));
}

TEST(MaskedObjective, SpecialTokensAreNeverTargets) {
  auto objective = make_objective(masked(0.9), vocabulary(), 50);
  auto tokens = some_tokens(51);
  for (size_t p = 0; p < 50; p += 3) tokens[p] = 2;
  for (uint64_t sample = 0; sample < 20; sample++) {
    Sequence out = run(*objective, tokens, {.seed = 1, .sample = sample});
    for (size_t p = 0; p < 50; p += 3) {
      EXPECT_EQ(out.targets[p], kNoTarget);
      EXPECT_EQ(out.ids[p], 2);
    }
  }
}

TEST(MaskedObjective, AShortSequenceHasAtLeastOneTarget) {
  auto objective = make_objective(masked(0.01), vocabulary(), 3);
  Sequence out = run(*objective, {1, 77, 2, 3});
  EXPECT_EQ(out.targets, (std::vector<int64_t>{kNoTarget, 77, kNoTarget}));
  Sequence only_special = run(*objective, {1, 2, 3, 3});
  EXPECT_EQ(only_special.targets, std::vector<int64_t>(3, kNoTarget));
}

TEST(MostTargets, AreNeverExceeded) {
  for (double fraction : {0.01, 0.15, 0.5})
    for (bool whole_words : {false, true})
      for (int64_t length : {1, 2, 3, 7, 8, 40, 100}) {
        const auto objective = make_objective(masked(fraction, whole_words), vocabulary(), length);
        int64_t most = 0;
        for (uint64_t sample = 0; sample < 50; sample++)
          most = std::max<int64_t>(most, length - std::ranges::count(run(*objective, some_tokens(length + 1, sample)).targets,
                                                                     kNoTarget));
        EXPECT_LE(most, most_targets(masked(fraction, whole_words), length)) << fraction << " of " << length;
        if (whole_words) continue;
        EXPECT_EQ(most, most_targets(masked(fraction), length)) << fraction << " of " << length;
      }
  EXPECT_EQ(most_targets({.kind = Objective::causal}, 9), 9);
}

TEST(MaskedObjective, WholeWordsAreMaskedWithAllTheirPieces) {
  auto objective = make_objective(masked(0.3, true), vocabulary(), 100);
  int words_of_several = 0;
  for (uint64_t sample = 0; sample < 50; sample++) {
    auto tokens = some_tokens(101, sample);
    for (size_t p = 10; p < 100; p += 20) tokens[p] = 2;  // a special token ends a word
    Sequence out = run(*objective, tokens, {.seed = 1, .sample = sample});
    int targets = 0, pieces = 0;
    for (size_t p = 0; p < 100; p++) {
      targets += out.targets[p] != kNoTarget;
      pieces += tokens[p] >= 5;
      const bool continues = p > 0 && tokens[p] >= 5 && tokens[p] % 2 == 1 && tokens[p - 1] >= 5;
      if (!continues) continue;
      EXPECT_EQ(out.targets[p] == kNoTarget, out.targets[p - 1] == kNoTarget) << "a word is cut at " << p;
      words_of_several += out.targets[p] != kNoTarget;
    }
    EXPECT_LE(targets, std::lround(0.3 * pieces));
    EXPECT_GE(targets, std::lround(0.3 * pieces) - 3);
  }
  EXPECT_GT(words_of_several, 100);
}

TEST(MaskedObjective, AWordLongerThanTheShareIsTakenWhenThereIsNoOther) {
  auto objective = make_objective(masked(0.15, true), vocabulary(), 6);
  Sequence out = run(*objective, {1, 10, 11, 13, 15, 2, 0});
  EXPECT_EQ(out.targets, (std::vector<int64_t>{kNoTarget, 10, 11, 13, 15, kNoTarget}));
}

TEST(MaskedObjective, MasksDependOnSeedSampleAndEpochOnly) {
  auto objective = make_objective(masked(), vocabulary(), 100);
  const auto tokens = some_tokens(101);
  const Sequence first = run(*objective, tokens, {1, 2, 3});
  EXPECT_EQ(run(*objective, tokens, {1, 2, 3}), first);
  EXPECT_NE(run(*objective, tokens, {9, 2, 3}), first);
  EXPECT_NE(run(*objective, tokens, {1, 9, 3}), first);
  EXPECT_NE(run(*objective, tokens, {1, 2, 9}), first);
}

TEST(MaskedObjective, AVocabularyWithoutMaskTokenIsRefused) {
  VocabularyFacts facts = vocabulary();
  facts.mask_token.reset();
  try {
    make_objective(masked(), facts, 10);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.parts.key, "objective");
    EXPECT_NE(std::string(error.what()).find("mask token"), std::string::npos) << error.what();
  }
}

// Undoes the objective: puts the spans of the target in the places of their sentinels.
std::vector<int64_t> recovered(const Sequence& out, const VocabularyFacts& facts) {
  const auto is_sentinel = [&](int64_t id) { return std::ranges::find(facts.sentinels, id) != facts.sentinels.end(); };
  const std::vector<int64_t> input(out.ids.begin(), out.ids.begin() + out.prefix - 1);
  std::vector<int64_t> target;
  for (size_t p = static_cast<size_t>(out.prefix) - 1; p < out.targets.size() && out.targets[p] != *facts.end_token; p++)
    target.push_back(out.targets[p]);
  std::vector<int64_t> text;
  for (int64_t id : input) {
    if (!is_sentinel(id)) text.push_back(id);
    else
      for (auto at = std::ranges::find(target, id) + 1; at != target.end() && !is_sentinel(*at); ++at) text.push_back(*at);
  }
  return text;
}

TEST(SpansObjective, TheTextIsInInputAndTargetWithExactCounts) {
  VocabularyFacts facts = vocabulary();
  facts.end_token = 3;
  for (int64_t i = 0; i < 100; i++) facts.sentinels.push_back(999 - i);
  for (const int64_t length : {8, 31, 128, 700}) {
    const ObjectiveSettings settings{.kind = Objective::spans};
    const auto objective = make_objective(settings, facts, length);
    const int64_t text = objective->text_length(length);
    const SpanCounts counts = span_counts(settings, length, true);
    EXPECT_EQ(counts.missing, std::max<int64_t>(1, std::llround(0.15 * static_cast<double>(text))));
    EXPECT_GE(text + 2 * counts.spans + 2 + 3, length) << "no room is wasted";
    std::set<std::vector<int64_t>> different;
    for (uint64_t sample = 0; sample < 50; sample++) {
      std::vector<int64_t> tokens = some_tokens(text + 1, sample);
      for (int64_t& id : tokens) id = 5 + id % 800;  // no sentinels
      Sequence out;
      out.ids.assign(static_cast<size_t>(length), -7);
      out.targets.assign(static_cast<size_t>(length), -7);
      const SequenceSlot slot{out.ids, out.targets, &out.prefix};
      objective->write(tokens, {.seed = 3, .sample = sample}, slot);
      EXPECT_EQ(out.prefix, counts.input() + 1);
      EXPECT_EQ(std::ranges::count_if(out.targets, [](int64_t id) { return id != kNoTarget; }), counts.target() + 1);
      EXPECT_LE(counts.target() + 1, most_targets(settings, length));
      // Every target is the token after its position.
      for (size_t p = 0; p + 1 < out.ids.size(); p++)
        EXPECT_TRUE(out.targets[p] == kNoTarget || out.targets[p] == out.ids[p + 1]) << p;
      EXPECT_EQ(recovered(out, facts), std::vector<int64_t>(tokens.begin(), tokens.end() - 1));
      Sequence again = out;
      objective->write(tokens, {.seed = 3, .sample = sample}, slot);
      EXPECT_EQ(out, again);
      objective->write(tokens, {.seed = 3, .sample = sample, .epoch = 1}, slot);
      different.insert(out.ids);
    }
    EXPECT_EQ(different.size(), 50u);
  }
}

// The numbers of T5: 512 inputs and 114 targets come from 568 tokens.
TEST(SpansObjective, CountsAreThoseOfT5) {
  const SpanCounts counts = span_counts({.kind = Objective::spans}, 512 + 114, true);
  EXPECT_EQ(counts.tokens, 568);
  EXPECT_EQ(counts.input() + 1, 512);
  EXPECT_EQ(counts.target() + 1, 114);
}

TEST(SpansObjective, SpansHaveAllLengths) {
  VocabularyFacts facts = vocabulary();
  for (int64_t i = 0; i < 8; i++) facts.sentinels.push_back(999 - i);
  const ObjectiveSettings settings{.kind = Objective::spans, .span_fraction = 0.5, .span_length = 3};
  const int64_t length = 16;  // 12 tokens: 6 in 2 spans
  const auto objective = make_objective(settings, facts, length);
  std::map<int64_t, int> first_span;
  for (uint64_t sample = 0; sample < 5000; sample++) {
    Sequence out;
    out.ids.resize(16);
    out.targets.resize(16);
    objective->write(std::vector<int64_t>(13, 7), {.seed = 1, .sample = sample}, {out.ids, out.targets, &out.prefix});
    const auto target = std::span(out.targets).subspan(static_cast<size_t>(out.prefix) - 1);
    first_span[std::ranges::find(target.subspan(1), 998) - target.begin() - 1]++;
  }
  ASSERT_EQ(first_span.size(), 5u);
  for (const auto& [size, count] : first_span) EXPECT_NEAR(count, 1000, 130) << size;
}

TEST(SpansObjective, RefusesATokenizerWithTooFewSentinels) {
  VocabularyFacts facts = vocabulary();
  facts.sentinels = {990};
  EXPECT_NO_THROW(make_objective({.kind = Objective::spans}, facts, 8));
  EXPECT_THROW(make_objective({.kind = Objective::spans}, facts, 128), UserError);
  EXPECT_THROW(make_objective({.kind = Objective::spans}, facts, 3), UserError);
}

}  // namespace megalith

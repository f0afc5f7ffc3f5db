// Batches of a data set that follows a curriculum.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "data/dataset.h"

namespace megalith {
namespace {

// Tokens count up: each token is its position in the stream. 300 samples of 20 tokens.
std::unique_ptr<Dataset> counting(uint64_t seed = 1, size_t sets = 1, ObjectiveSettings objective = {}) {
  std::vector<TrainingSet> train(sets);
  for (size_t set = 0; set < sets; set++) {
    std::vector<int64_t> ids(6001);
    std::iota(ids.begin(), ids.end(), static_cast<int64_t>(set) * 10000);
    train[set].sources.push_back(std::make_unique<MemorySource>(std::move(ids), fmt::format("set {}", set)));
    train[set].weight = set == 0 ? 1 : 2;
  }
  DataSettings settings;
  settings.sequence = 20;
  settings.valid_fraction = 0;
  VocabularyFacts vocabulary;
  vocabulary.vocab_size = 30000;
  vocabulary.mask_token = 29999;
  return std::make_unique<Dataset>(std::move(train), TokenSources{}, settings, objective, vocabulary, seed, 6);
}

constexpr int64_t kLayers = 2;

Config settings_of(std::vector<CurriculumSettings> entries) {
  Config config;
  config.data.sequence = 20;
  config.train.batch = 6;
  config.curriculum = std::move(entries);
  return config;
}
StepShapes shapes_of(std::vector<CurriculumSettings> entries) { return {settings_of(std::move(entries)), kLayers}; }
CurriculumSettings length(CurriculumApply apply, Hold hold) {
  return {.metric = "length", .apply = apply, .hold = hold, .pacing = {.from = 3, .to = 20, .step = 1, .over = 40}};
}
CurriculumSettings filter(const std::string& name, DifficultyUnit unit, double from, double to, int64_t over,
                          double root = 1) {
  return {.metric = name, .unit = unit, .pacing = {.from = from, .to = to, .step = 0, .over = over, .root = root}};
}

TEST(Curriculum, TruncatedSequencesAreTheBeginningsOfSamplesInTheFirstEpoch) {
  for (Hold hold : {Hold::sequences, Hold::tokens}) {
    auto data = counting();
    const StepShapes progress = shapes_of({length(CurriculumApply::truncate, hold)});
    data->follow(progress, {});
    for (int64_t step : {0, 1, 20, 39, 40, 41}) {
      const Batch batch = data->train_batch(step, 6);
      ASSERT_EQ(batch.length, progress.shape(step).length);
      ASSERT_EQ(batch.sequences, hold == Hold::tokens ? 6 * (20 / batch.length) : 6);
      std::set<int64_t> begins;
      for (int64_t row = 0; row < batch.sequences; row++) {
        const int64_t begin = batch.ids[static_cast<size_t>(row * batch.length)];
        const bool first_epoch = progress.samples_before(step) + row < data->samples();
        if (first_epoch) {
          EXPECT_EQ(begin % 20, 0);
        } else {
          EXPECT_LE(begin % 20, 20 - batch.length);
        }
        EXPECT_TRUE(begins.insert(begin).second);
        for (int64_t p = 0; p < batch.length; p++) {
          EXPECT_EQ(batch.ids[static_cast<size_t>(row * batch.length + p)], begin + p);
          EXPECT_EQ(batch.targets[static_cast<size_t>(row * batch.length + p)], begin + p + 1);
        }
      }
    }
  }
}

TEST(Curriculum, ReshapedSamplesKeepTheirTokens) {
  auto data = counting();
  const StepShapes progress = shapes_of({length(CurriculumApply::reshape, Hold::tokens)});
  data->follow(progress, {});
  for (int64_t step = 0; step < 45; step++) {
    const Batch batch = data->train_batch(step, 6);
    const int64_t pieces = 20 / batch.length;
    ASSERT_EQ(batch.sequences, 6 * pieces);
    for (int64_t row = 0; row < batch.sequences; row++) {
      const int64_t begin = batch.ids[static_cast<size_t>(row * batch.length)];
      if (row % pieces > 0) {
        EXPECT_EQ(begin, batch.ids[static_cast<size_t>(row * batch.length - 1)] + 1);
      } else if (20 % batch.length == 0) {
        EXPECT_EQ(begin % 20, 0);
      }
      for (int64_t p = 0; p < batch.length; p++)
        EXPECT_EQ(batch.targets[static_cast<size_t>(row * batch.length + p)], begin + p + 1);
    }
  }
}

TEST(Curriculum, PiecesOfASampleAreMaskedEachInItsOwnWay) {
  auto data = counting(1, 1, {.kind = Objective::masked, .mask_fraction = 0.5});
  CurriculumSettings entry = length(CurriculumApply::reshape, Hold::tokens);
  entry.pacing.from = 10;
  data->follow(shapes_of({entry}), {});
  const Batch batch = data->train_batch(0, 6);
  int different = 0;
  for (int64_t row = 0; row < batch.sequences; row += 2)
    for (size_t p = 0; p < 10; p++)
      different += (batch.targets[static_cast<size_t>(row * 10) + p] == kNoTarget) !=
                   (batch.targets[static_cast<size_t>(row * 10) + 10 + p] == kNoTarget);
  EXPECT_GT(different, 5);
}

// Every batch contains only samples that all metrics admit at its step. The test computes them from the formulas.
TEST(Curriculum, SamplesAreAdmittedWhenAllMetricsAdmitThem) {
  for (size_t sets : {1u, 2u}) {
    auto data = counting(3, sets);
    ASSERT_EQ(data->samples(), static_cast<int64_t>(300 * sets));
    std::vector<double> a(300 * sets), b(300 * sets);
    for (size_t i = 0; i < a.size(); i++) {
      a[i] = static_cast<double>((i * 37) % 101);
      b[i] = static_cast<double>((i * i) % 97) / 7;
    }
    CurriculumSettings by_tokens = filter("b", DifficultyUnit::percentile, 50, 100, 4000, 2);
    by_tokens.pacing.unit = Counted::tokens;
    const std::vector<Filter> filters{{filter("a", DifficultyUnit::value, 20, 90, 60), a}, {by_tokens, b}};
    const StepShapes progress = shapes_of({length(CurriculumApply::truncate, Hold::sequences)});
    data->follow(progress, filters);
    std::set<int64_t> seen;
    for (int64_t step = 0; step < 300; step++) {
      const Batch batch = data->train_batch(step, 6);
      const double limit_a = Pacing(filters[0].settings.pacing).at(step);
      const double limit_b = Pacing(by_tokens.pacing).at(progress.tokens_before(step));
      for (int64_t row = 0; row < batch.sequences; row++) {
        const int64_t token = batch.ids[static_cast<size_t>(row * batch.length)], set = token / 10000;
        const int64_t sample = set * 300 + token % 10000 / 20;
        EXPECT_LE(a[static_cast<size_t>(sample)], limit_a);
        int64_t easier = 0;  // easier samples in its set
        for (int64_t i = set * 300; i < set * 300 + 300; i++)
          easier += b[static_cast<size_t>(i)] < b[static_cast<size_t>(sample)] ||
                    (b[static_cast<size_t>(i)] == b[static_cast<size_t>(sample)] && i < sample);
        EXPECT_LT(100.0 * static_cast<double>(easier) / 300, limit_b);
        seen.insert(sample);
      }
    }
    const auto admitted = static_cast<size_t>(std::ranges::count_if(a, [](double v) { return v <= 90; }));
    EXPECT_EQ(seen.size(), admitted);
  }
}

// Every rank has its own data set, reads the step's batch with it, and takes its part. A resumed rank has read nothing
// before. tests/ranks/layouts.py tests the same with real ranks.
TEST(Curriculum, RanksReadPartsOfOneBatchWhereverTheyWereResumed) {
  std::vector<double> values(600);
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<double>(i % 60);
  const std::vector<Filter> filters{{filter("v", DifficultyUnit::percentile, 10, 100, 50), values}};
  Config settings = settings_of({length(CurriculumApply::truncate, Hold::tokens)});
  settings.train.batch = 12;
  const StepShapes progress(settings, kLayers);
  auto read_by = [&] {
    auto data = counting(1, 2);  // blended
    data->follow(progress, filters);
    return data;
  };
  const auto whole = read_by();
  std::vector<Batch> batches;
  for (int64_t step = 0; step < 60; step++) batches.push_back(whole->train_batch(step, 12));
  for (int64_t ranks : {1, 2, 3, 4}) {
    std::vector<std::vector<int64_t>> ids(60), targets(60);
    for (int64_t rank = 0; rank < ranks; rank++) {
      auto data = read_by();
      for (int64_t step = 0; step < 60; step++) {
        if (step % (10 + rank) == 0) data = read_by();  // killed and resumed here
        const Batch batch = data->train_batch(step, 12);
        const int64_t each = batch.sequences / ranks;
        ASSERT_EQ(each * ranks, batch.sequences);
        const Batch part = batch.slice(rank * each, each);
        const auto at = static_cast<size_t>(step);
        ids[at].insert(ids[at].end(), part.ids.begin(), part.ids.end());
        targets[at].insert(targets[at].end(), part.targets.begin(), part.targets.end());
      }
    }
    for (size_t step = 0; step < 60; step++) {
      EXPECT_EQ(ids[step], batches[step].ids) << step;
      EXPECT_EQ(targets[step], batches[step].targets) << step;
    }
  }
}

TEST(Curriculum, DifficultiesOtherThanThoseOfTheCheckpointAreRefused) {
  std::vector<double> values(600);
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<double>(i * 7 % 601);
  const StepShapes progress = shapes_of({});
  auto with = [&](const std::vector<double>& of) {
    auto data = counting(1, 2);
    data->follow(progress, std::vector<Filter>{{filter("v", DifficultyUnit::value, 10, 600, 3000), of}});
    return data;
  };
  auto data = with(values);
  const nlohmann::json saved = data->admissions();
  // Each step admits more samples. A checkpoint stores 16 digits per set, whatever the step.
  for (int64_t step = 0; step < 3000; step += 500) {
    data->train_batch(step, 6);
    EXPECT_EQ(print_json(data->admissions()).size(), 2 * 16 + std::string(R"(["",""])").size());
  }
  EXPECT_NO_THROW(with(values)->check_admissions(parse_json(print_json(saved))));
  std::ranges::reverse(values);
  EXPECT_THROW(with(values)->check_admissions(saved), UserError);
  auto all = counting();
  EXPECT_TRUE(all->admissions().is_null());
  EXPECT_NO_THROW(all->check_admissions(nlohmann::json()));
}

TEST(Curriculum, WhatIsLeftOutOfASampleChangesWithTheEpoch) {
  for (CurriculumApply apply : {CurriculumApply::truncate, CurriculumApply::reshape}) {
    auto data = counting();
    CurriculumSettings entry = length(apply, apply == CurriculumApply::reshape ? Hold::tokens : Hold::sequences);
    entry.pacing.from = entry.pacing.to = 12;  // of 20 tokens
    data->follow(shapes_of({entry}), {});
    std::set<int64_t> first, later;
    for (int64_t step = 0; step < 150; step++) {  // three epochs
      const Batch batch = data->train_batch(step, 6);
      std::set<int64_t>& offsets = step < 50 ? first : later;
      for (size_t row = 0; row < 6; row++) offsets.insert(batch.ids[row * 12] % 20);
    }
    EXPECT_EQ(first, std::set<int64_t>{0});
    EXPECT_EQ(later, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

std::string refused(const std::vector<Filter>& filters, size_t sets = 1) {
  try {
    counting(1, sets)->follow(shapes_of({}), filters);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Curriculum, AFirstStepThatAdmitsNothingIsRefused) {
  const Filter hard{filter("rarity", DifficultyUnit::value, 1, 9, 10), std::vector<double>(300, 5.0)};
  const Filter easy{filter("length", DifficultyUnit::percentile, 10, 100, 10), std::vector<double>(300, 5.0)};
  for (const std::vector<Filter>& filters : {std::vector{hard}, std::vector{easy, hard}})
    EXPECT_EQ(refused(filters),
              "curriculum: expected at least one sample that the first step admits (rarity, from: 1), got none of 300; the "
              "easiest has rarity 5; raise `from`, or use unit: percentile");
  std::vector<double> rising(300), falling(300);
  std::iota(rising.begin(), rising.end(), 0.0);
  std::iota(falling.rbegin(), falling.rend(), 0.0);
  EXPECT_EQ(refused({{filter("a", DifficultyUnit::value, 9, 300, 10), rising},
                     {filter("b", DifficultyUnit::value, 9, 300, 10), falling}}),
            "curriculum: expected at least one sample that every filter admits at the first step, got none of 300 samples "
            "(a from: 9, b from: 9); raise `from` of one of these filters");
  std::vector<double> of_both(600, 5.0);  // the error names the blended set without admitted samples
  of_both[0] = 1;
  const Filter none_of_one{filter("rarity", DifficultyUnit::value, 1, 9, 10), of_both};
  EXPECT_EQ(refused({none_of_one}, 2).find("set 1: curriculum: expected"), 0u);
}

TEST(Curriculum, LimitsOfEntriesWithOneMetricHaveNamesOfTheirOwn) {
  std::vector<CurriculumSettings> entries{filter("length", DifficultyUnit::value, 1, 2, 3),
                                          length(CurriculumApply::truncate, Hold::tokens),
                                          filter("rarity", DifficultyUnit::value, 1, 2, 3),
                                          filter("length", DifficultyUnit::value, 3, 4, 5)};
  std::vector<std::string> names;
  for (const CurriculumSettings& entry : entries) names.push_back(limit_name(entries, entry));
  EXPECT_EQ(names, (std::vector<std::string>{"length filter", "length", "rarity", "length filter 2"}));
}

}  // namespace
}  // namespace megalith

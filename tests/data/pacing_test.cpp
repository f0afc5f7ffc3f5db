#include "data/pacing.h"

#include <gtest/gtest.h>

#include "data/step_shapes.h"

namespace megalith {
namespace {

PacingSettings formula(double from, double to, double step, int64_t over, double root = 1) {
  return {.from = from, .to = to, .step = step, .over = over, .root = root};
}

// (t, value): computed with Python's fractions and decimal to 30 digits, then rounded down to the step.
TEST(Pacing, FollowsTheFormulaRoundedDownButNeverBelowItsBeginning) {
  struct Case {
    PacingSettings settings;
    std::vector<std::pair<int64_t, double>> table;
  };
  const std::vector<Case> cases{
      {formula(64, 1024, 8, 5000),
       {{0, 64}, {1, 64}, {41, 64}, {42, 72}, {2500, 544}, {4999, 1016}, {5000, 1024}, {9999, 1024}}},
      {formula(64, 1024, 8, 5000, 2), {{0, 64}, {1, 72}, {2, 80}, {1250, 544}, {2500, 736}, {4999, 1016}, {5000, 1024}}},
      {formula(1, 100, 1, 100, 3), {{0, 1}, {1, 22}, {8, 43}, {27, 64}, {64, 86}, {99, 99}, {100, 100}}},
      {formula(10, 100, 64, 90), {{0, 10}, {53, 10}, {54, 64}, {89, 64}, {90, 100}}},  // DeepSpeed begins at 0
      {formula(-1.5, 2.5, 0, 8), {{0, -1.5}, {1, -1}, {4, 0.5}, {8, 2.5}}},
      {formula(-10, 0, 1, 10), {{0, -10}, {1, -9}, {5, -5}, {9, -1}, {10, 0}}},
      {formula(-1, 1, 0.1, 20), {{0, -1}, {1, -0.9}, {7, -3 * 0.1}, {10, 0}, {13, 3 * 0.1}, {20, 1}}},
      {formula(7, 7, 8, 10), {{0, 7}, {5, 7}, {10, 7}}},
      {formula(0, 1, 0.1, 10), {{0, 0}, {1, 0.1}, {2, 0.2}, {3, 3 * 0.1}, {4, 0.4}, {5, 0.5}, {6, 6 * 0.1}, {7, 7 * 0.1}}},
      {{.from = 1, .to = 9, .step = 0, .over = 20, .table = {{0, 1}, {5, 4}, {20, 9}}},
       {{0, 1}, {4, 1}, {5, 4}, {19, 4}, {20, 9}, {1000, 9}}},
  };
  for (const Case& c : cases)
    for (auto [t, value] : c.table)
      EXPECT_DOUBLE_EQ(Pacing(c.settings).at(t), value) << c.settings.from << " to " << c.settings.to << " at " << t;
}

Config config_with(CurriculumApply apply, Hold hold, PacingSettings pacing) {
  Config config;
  config.data.sequence = 100;
  config.train.batch = 6;
  config.model.shape.layers = 4;
  config.curriculum = {{.metric = "length", .apply = apply, .hold = hold, .pacing = std::move(pacing)}};
  return config;
}

// Checks one step after another with a simple count.
void expect_as_counted(const Config& config) {
  const StepShapes progress(config, config.model.shape.layers);
  const CurriculumSettings& entry = config.curriculum[0];
  int64_t samples = 0, tokens = 0, visits = 0;
  for (int64_t step = 0; step < 400; step++) {
    auto value = [&](const PacingSettings& pacing) {
      return static_cast<int64_t>(Pacing(pacing).at(pacing.unit == Counted::steps ? step : tokens));
    };
    const int64_t length = value(entry.pacing);
    const int64_t fit = entry.hold == Hold::tokens ? 100 / length : 1;
    const StepShape shape = progress.shape(step);
    EXPECT_EQ(shape.length, length) << step;
    EXPECT_EQ(shape.sequences(), 6 * fit) << step;
    EXPECT_EQ(shape.pieces, entry.apply == CurriculumApply::reshape ? fit : 1) << step;
    EXPECT_EQ(progress.samples_before(step), samples) << step;
    EXPECT_EQ(progress.tokens_before(step), tokens) << step;
    EXPECT_DOUBLE_EQ(progress.layer_tokens_before(step), static_cast<double>(visits) / 4) << step;
    EXPECT_DOUBLE_EQ(progress.full_steps_before(step, Counted::tokens), static_cast<double>(tokens) / 600) << step;
    if (const int64_t full = tokens / 600; full > 0) {  // the first step at which `full` full steps are done
      const int64_t steps = progress.steps_for(full, Counted::tokens);
      EXPECT_GE(progress.tokens_before(steps), full * 600);
      EXPECT_LT(progress.tokens_before(steps - 1), full * 600);
    }
    const int64_t pace = config.token_dropping.on() ? value(config.token_dropping.pacing) : length;
    samples += shape.samples;
    tokens += shape.sequences() * length;
    visits += shape.sequences() * (2 * length + 2 * std::min(pace, length));
  }
}

TEST(StepShapes, CountsWhatStepsTakeForEveryWayToShortenThem) {
  PacingSettings by_steps = formula(8, 100, 4, 150, 2), by_tokens = formula(8, 100, 4, 20000);
  by_tokens.unit = Counted::tokens;
  PacingSettings table{.from = 5, .to = 100, .step = 0, .over = 300, .table = {{0, 5}, {7, 50}, {8, 51}, {300, 100}}};
  for (const PacingSettings& pacing : {by_steps, by_tokens, table})
    for (auto [apply, hold] : {std::pair{CurriculumApply::truncate, Hold::sequences},
                               {CurriculumApply::truncate, Hold::tokens},
                               {CurriculumApply::reshape, Hold::tokens}}) {
      Config config = config_with(apply, hold, pacing);
      expect_as_counted(config);
      for (const PacingSettings& kept : {formula(6, 80, 2, 200), by_tokens, table}) {
        config.token_dropping.pacing = kept;
        expect_as_counted(config);
      }
    }
}

// 9e15 steps of a million tokens exceed 63 bits. No run gets that far.
TEST(StepShapes, APacingMayGoOverMoreThanCanBeCounted) {
  for (Counted unit : {Counted::steps, Counted::tokens}) {
    PacingSettings slow = formula(8, 16, 1, 9'000'000'000'000'000, 2);
    slow.unit = unit;
    Config config = config_with(CurriculumApply::truncate, Hold::sequences, slow);
    config.train.batch = 1'000'000;
    config.model.shape.layers = 100;
    const StepShapes shapes(config, config.model.shape.layers);
    EXPECT_EQ(shapes.shape(0).length, 8);
    EXPECT_EQ(shapes.shape(1'000'000).length, 8);
    EXPECT_EQ(shapes.tokens_before(1'000'000), 8'000'000'000'000);
  }
}

TEST(StepShapes, AMillionStepsAreAsNearAsTheFirst) {
  Config config = config_with(CurriculumApply::truncate, Hold::sequences, formula(1, 100, 1, 1'000'000'000'000));
  const StepShapes progress(config, config.model.shape.layers);
  EXPECT_EQ(progress.shape(500'000'000'000).length, 50);
  EXPECT_EQ(progress.shape(2'000'000'000'000).length, 100);
  const StepShapes plain(6, 100);
  EXPECT_EQ(plain.tokens_before(1'000'000), 600'000'000);
  EXPECT_EQ(plain.steps_for(1000, Counted::tokens), 1000);
  EXPECT_EQ(plain.steps_for(1000, Counted::layer_tokens), 1000);
}

}  // namespace
}  // namespace megalith

#include "run/run.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/parse.h"
#include "config/resolve_layout.h"
#include "planner/plan.h"
#include "run/resume.h"
#include "temp_dir.h"

namespace megalith {
namespace {

// Returns the settings with which the run in `dir` is started.
Config settings_in(const TempDir& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides{"run.dir=" + dir.path().string()};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return parse_config("model: {arch: gpt2, layers: 2, hidden: 16, heads: 2, context: 32}\n"
                      "data: {train: none.txt, sequence: 16, tokenizer: {train: bpe, vocab: 300}}\n"
                      "train: {steps: 6, batch: 8}\n"
                      "curriculum: [{metric: length, apply: truncate, from: 8, to: 16, over: 3 steps}]\n",
                      "test.yaml", "test", overrides);
}

megalith::Run prepared(const Config& config, const Layout& layout = {}) {
  ForeseenTokenizer tokenizer(/*begun=*/false);
  return prepare_run(config, {.mesh = Mesh(layout), .host_ranks = layout.ranks(), .tokenizer = tokenizer});
}

TEST(Run, HasAllThatTheSettingsLeaveOpenAndLeavesThemAsTheyAre) {
  const TempDir dir;
  const Config config = settings_in(dir);
  const megalith::Run run = prepared(config);
  EXPECT_EQ(run.config, config);
  EXPECT_EQ(config.model.shape.vocab, 0);
  EXPECT_EQ(run.shape.vocab, 300);
  EXPECT_GE(run.threads, 1);
  EXPECT_EQ(run.steps, 6);
  EXPECT_EQ(run.shapes.shape(0).length, 8);
  EXPECT_EQ(run.shapes.shape(5).length, 16);
  EXPECT_TRUE(run.weights.empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "it writes no files";
  const PlanInput input = plan_input(run);
  EXPECT_EQ(input.shape, run.shape);
  EXPECT_EQ(input.threads, run.threads);
  EXPECT_GT(input.shapes.size(), 1u);
  EXPECT_FALSE(input.resumed);
}

TEST(Resume, AJumpOfTheLearningRateIsToldWithItsRates) {
  const TempDir dir;
  const auto jump = [&](const std::string& before, const std::string& now, int64_t step) {
    const std::string lr = ", lr: 1e-3, batch: 8}";
    const std::vector<std::string> was{"train={" + before + lr}, is{"train={" + now + lr};
    return describe_rate_jump(settings_in(dir, was), settings_in(dir, is), 2, step);
  };
  // Half of the longer run is done: a cosine has fallen half-way, from 1e-3 to 1e-4.
  const std::string said = jump("steps: 101, warmup: 1", "steps: 201, warmup: 1", 101);
  EXPECT_NE(said.find("jumps from 0.0001 (step 101) to 0.0005429 (step 102)"), std::string::npos) << said;
  EXPECT_NE(said.find("train.lr=0.0001 train.min_lr=0.0001"), std::string::npos) << said;
  EXPECT_NE(jump("steps: 100, decay: wsd", "steps: 200, decay: wsd", 100), "");
  EXPECT_NE(jump("steps: 100, decay: wsd", "steps: 200, decay: wsd", 95), "");
  EXPECT_EQ(jump("steps: 100, decay: wsd", "steps: 200, decay: wsd", 80), "");
  EXPECT_EQ(jump("steps: 100, decay: constant", "steps: 200, decay: constant", 100), "");
  EXPECT_EQ(jump("steps: 100, decay: inverse_sqrt", "steps: 200, decay: inverse_sqrt", 100), "");
  EXPECT_EQ(jump("steps: 100", "steps: 100, decay: cosine", 50), "");
  EXPECT_EQ(jump("steps: 100", "steps: 90", 100), "") << "nothing is trained";
  EXPECT_NE(jump("steps: 100", "steps: 100, decay: constant", 99).find("train.decay=constant train.lr="), std::string::npos);
  // Steps that read half as many tokens count half: the run of 100 full batches is not over at step 100.
  const std::string tokens = ", decay: wsd, schedule_by: tokens";
  EXPECT_EQ(jump("steps: 100" + tokens, "steps: 200" + tokens, 81), "");
  EXPECT_NE(jump("steps: 100" + tokens, "steps: 200" + tokens, 101), "");
  // A rate of 0 is no rate to continue at.
  const std::string from_zero = jump("steps: 100, min_lr: 0", "steps: 200, min_lr: 0", 100);
  EXPECT_NE(from_zero.find("jumps from 0 (step 100)"), std::string::npos) << from_zero;
  EXPECT_EQ(from_zero.find("To continue"), std::string::npos) << from_zero;
  // These settings follow the recommendation of the message.
  const Config was = settings_in(dir, {"train={steps: 101, lr: 1e-3}"});
  EXPECT_EQ(describe_rate_jump(was, settings_in(dir, {"train={steps: 201, lr: 1e-4, min_lr: 1e-4}"}), 2, 101), "");
}

TEST(Run, RanksOfAHostShareItsCores) {
  const TempDir dir;
  const Config config = settings_in(dir);
  EXPECT_EQ(prepared(config, {.data = 8}).threads, std::max<int64_t>(1, prepared(config).threads / 8));
  EXPECT_EQ(prepared(settings_in(dir, {"train.threads=3"}), {.data = 8}).threads, 3);
}

TEST(Run, AModelThatTheLayoutCannotDivideIsRefused) {
  const TempDir dir;
  EXPECT_THROW(prepared(settings_in(dir), {.tensor = 4}), UserError) << "two heads";
  EXPECT_THROW(prepared(settings_in(dir), {.pipeline = 8}), UserError) << "four blocks";
}

struct Resumed : testing::Test {
  // Writes the files of a run that began with one micro-batch of 4 and 2 threads.
  void begin(const Layout& layout) {
    Plan plan;
    plan.micro_batch = 4;
    megalith::Run run = prepared(settings_in(dir), layout);
    run.threads = 2;
    write_file_atomically(dir / "config.yaml", resolved_yaml(run, plan));
  }
  Config resume(const std::vector<std::string>& now, const Layout& layout) {
    return resume_config(dir.path(), settings_in(dir, now), layout);
  }
  TempDir dir;
};

TEST_F(Resumed, KeepsWhatItDecidedWhenItBegan) {
  begin({.data = 2});
  const Config config = resume({"train.steps=9"}, {.data = 2});
  EXPECT_EQ(config.train.micro_batch, 4);
  EXPECT_EQ(config.train.threads, 2);
  EXPECT_EQ(config.parallel.data, 2);
  EXPECT_EQ(config.model.shape.vocab, 300);
  EXPECT_EQ(config.train.steps, 9);
}

TEST_F(Resumed, DecidesAgainWhatAnotherLayoutDividesOtherwise) {
  begin({.data = 2});
  const Config config = resume({}, {.data = 4});
  EXPECT_EQ(config.train.micro_batch, 0);
  EXPECT_EQ(config.train.threads, 0);
  EXPECT_EQ(config.model.shape.vocab, 300) << "results depend on it";
}

TEST_F(Resumed, RefusesSettingsThatMayNotChange) {
  begin({});
  try {
    resume({"run.seed=3", "train.batch=16"}, {});
    FAIL() << "resumed";
  } catch (const UserError& error) {
    EXPECT_EQ(error.parts.hint,
              "this run started with run.seed 1, train.batch 8; it cannot be resumed with run.seed 3, train.batch 16; "
              "set them back, or use a new run.dir");
  }
}

TEST_F(Resumed, GoesOnWithTheSettingsOfNowIfItsOwnAreGone) {
  EXPECT_EQ(resume({}, {}), settings_in(dir));
}

}  // namespace
}  // namespace megalith

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

// What the run in `dir` is started with.
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
  // As if a run with one micro-batch of 4 and 2 threads had begun.
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
    EXPECT_NE(error.parts.got.find("run.seed from 1 to 3"), std::string::npos) << error.what();
    EXPECT_NE(error.parts.got.find("train.batch from 8 to 16"), std::string::npos) << error.what();
  }
}

TEST_F(Resumed, GoesOnWithTheSettingsOfNowIfItsOwnAreGone) {
  EXPECT_EQ(resume({}, {}), settings_in(dir));
}

}  // namespace
}  // namespace megalith

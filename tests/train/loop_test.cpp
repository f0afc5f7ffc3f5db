// Tests the files that a failed run leaves. The data of the training loop throws when the first step reads it.
#include "engine/state_pieces.h"
#include "train/loop.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <numeric>

#include "base/files.h"
#include "base/json.h"
#include "config/parse.h"
#include "memory/allocator.h"
#include "planner/own_cache.h"
#include "temp_dir.h"

namespace megalith {
namespace {

constexpr int64_t kVocabulary = 50;

// Readable tokens until `armed`, then `fail` is called at every read.
struct FailingSource final : TokenSource {
  explicit FailingSource(std::atomic<bool>& arm, std::function<void()> how) : armed(arm), fail(std::move(how)) {}
  int64_t tokens() const override { return 2000; }
  void copy(int64_t begin, std::span<int64_t> out) const override {
    if (armed) fail();
    for (size_t i = 0; i < out.size(); i++) out[i] = (begin + static_cast<int64_t>(i)) % kVocabulary;
  }
  int64_t document_end(int64_t) const override { return tokens(); }
  int64_t documents() const override { return 1; }
  int64_t document_begin(int64_t document) const override { return document == 0 ? 0 : tokens(); }
  std::string name() const override { return "tokens of a test"; }
  std::atomic<bool>& armed;
  std::function<void()> fail;
};

struct FailingRun : OwnCache {
  void SetUp() override {
    OwnCache::SetUp();
    install_allocator();
    config = parse_config(fmt::format("model: {{arch: gpt2, layers: 1, hidden: 16, heads: 2, context: 16, vocab: {}}}\n"
                                      "data: {{train: none.txt, sequence: 16}}\n"
                                      "train: {{steps: 3, batch: 2, micro_batch: 1, threads: 1, eval_every: 0}}\n"
                                      "checkpoint: {{every: 0}}\n"
                                      "run: {{dir: {}}}\n",
                                      kVocabulary, dir.path().string()),
                          "test.yaml", "test");
  }

  // Runs to the end. Returns the result, or throws what the loop throws.
  TrainResult run(const std::function<void()>& fail) {
    std::atomic<bool> armed = false;
    TokenSources sources;
    sources.push_back(std::make_unique<FailingSource>(armed, fail));
    const Dataset data(std::move(sources), {}, config.data, config.objective, {.vocab_size = kVocabulary}, 1, 2);
    ForeseenTokenizer tokenizer(/*begun=*/false);
    const megalith::Run prepared = prepare_run(config, {.tokenizer = tokenizer});
    const PlanInput input = plan_input(prepared);
    const Plan plan = make_plan(input, Measuring::forbidden);
    Engine engine(prepared.shape, config.train, 1, /*training=*/true,
                  {plan.strategy.placement, "", {}, plan.micros, plan.staging, nullptr});
    engine.state().initialise(1);
    launch::StatusPage page;
    const RunDirectory directory(dir.path());
    armed = fail != nullptr;
    return TrainingLoop({prepared, input, plan, directory, engine, data, nullptr, page}).run({});
  }

  nlohmann::json summary() const { return parse_json(read_file(dir / "summary.json")); }

  TempDir dir;
  Config config;
};

template <class Exception>
std::function<void()> throwing(Exception exception) {
  return [=] { throw exception; };
}

TEST_F(FailingRun, LeavesASummaryThatSaysSoWhateverIsThrown) {
  const std::vector<std::pair<std::string, std::function<void()>>> kinds{
      {"tokens.bin: cannot read: Input/output error", throwing(Fault("tokens.bin: cannot read: Input/output error"))},
      {"loop.cpp:1: x > 0", throwing(Bug("loop.cpp:1: x > 0"))},
      {"a.bin: expected ids below 50, got 77", throwing(UserError({"a.bin", "", "ids below 50", "77", ""}))},
      {"out of memory", throwing(std::bad_alloc())},
      {"shapes differ", [] { TORCH_CHECK(false, "shapes differ"); }},
      {"vector::_M_range_check", throwing(std::out_of_range("vector::_M_range_check"))},
      {"an exception that is not a std::exception", throwing(7)},
  };
  for (const auto& [text, fail] : kinds) {
    dir.write("summary.json", R"({"state": "finished", "steps": 99, "loss": 1.5})");  // left by an earlier process
    dir.write("trace.json", "[]");
    bool thrown = false;
    try {
      EXPECT_EQ(run(fail).code, ExitCode::fault) << text;
    } catch (...) {
      thrown = true;
    }
    EXPECT_EQ(thrown, text.find("tokens.bin") == std::string::npos) << text << ": the caller chooses the exit code";
    EXPECT_EQ(summary()["state"], "failed") << text;
    EXPECT_EQ(summary()["error"], text);
    EXPECT_EQ(summary()["steps"], 0) << text;
    EXPECT_FALSE(summary().contains("loss")) << text;
    EXPECT_FALSE(std::filesystem::exists(dir / "trace.json")) << text;
    EXPECT_NE(dir.read("report.html").find("\"state\":\"failed\""), std::string::npos) << text;
  }
}

TEST_F(FailingRun, LeavesOneAlsoWhenItsLogsCannotBeOpened) {
  std::filesystem::create_directories(dir / "metrics.jsonl");
  EXPECT_ANY_THROW(run(nullptr));
  EXPECT_EQ(summary()["state"], "failed");
  EXPECT_NE(summary()["error"].get<std::string>().find("metrics.jsonl"), std::string::npos) << summary();
}

TEST_F(FailingRun, KeepsItsOwnErrorWhenTheSummaryCannotBeWritten) {
  std::filesystem::create_directories(dir / "summary.json/in_the_way");
  EXPECT_THROW(run(throwing(Bug("loop.cpp:1: x > 0"))), std::exception);
  std::filesystem::create_directories(dir / "report.html/in_the_way");
  std::filesystem::remove_all(dir / "summary.json");
  EXPECT_THROW(run(throwing(Bug("loop.cpp:1: x > 0"))), Bug);
  EXPECT_EQ(summary()["error"], "loop.cpp:1: x > 0");
}

TEST_F(FailingRun, SaysWhatToChangeWhenTheLossIsNotFinite) {
  config.train.lr = 1e30;
  config.train.max_bad_steps = 1;
  config.train.steps = 9;
  EXPECT_EQ(run(nullptr).code, ExitCode::fault);
  const std::string error = summary()["error"];
  EXPECT_NE(error.find("1 step had a loss or gradient that is not finite"), std::string::npos) << error;
  EXPECT_NE(error.find("lower train.lr (now 1e+30), raise train.warmup (now 0) or lower train.clip (now 1)"), std::string::npos)
      << error;
}

TEST_F(FailingRun, FinishesWithoutAnErrorWhenNothingFails) {
  EXPECT_EQ(run(nullptr).code, ExitCode::done);
  EXPECT_EQ(summary()["state"], "finished");
  EXPECT_EQ(summary()["steps"], 3);
  EXPECT_FALSE(summary().contains("error"));
}

}  // namespace
}  // namespace megalith

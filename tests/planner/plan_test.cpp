#include "planner/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "families/family.h"
#include "families/list.h"
#include "memory/allocator.h"
#include "planner/calibration.h"
#include "planner/input.h"
#include "planner/measurements.h"
#include "planner/own_cache.h"
#include "planner/plan_json.h"
#include "planner/refusal.h"
#include "planner/shape_plans.h"

namespace megalith {
namespace {

struct Planner : OwnCache {
  void SetUp() override {
    OwnCache::SetUp();
    install_allocator();
    config.run.dir = folder;
    config.model.shape = {&llama_family, 2, 64, 4, 2, 128, 500, 64};
    config.model.shape.tied = true;
    config.data.sequence = 64;
    config.train.batch = 64;
    config.train.threads = 2;
  }

  Config config;
};

TEST_F(Planner, ALargeBudgetTakesTheLargestMicroBatchThatPays) {
  Plan plan = make_plan(input_of(config));
  EXPECT_EQ(plan.micro_batch, 64);  // 4,096 tokens at once
  EXPECT_EQ(plan.micros, 1);
  EXPECT_GT(plan.predicted.seconds, 0);
  EXPECT_LE(plan.predicted_peak(), plan.budget);
}

TEST_F(Planner, ASmallerBudgetTakesASmallerMicroBatchThatFits) {
  make_plan(input_of(config));  // the first measurement makes libraries allocate buffers that stay: the process grows
  Plan whole = make_plan(input_of(config));
  config.memory.ram = Bytes(whole.predicted_peak().value - whole.predicted.peak_bytes / 4);
  Plan plan = make_plan(input_of(config));
  EXPECT_LT(plan.micro_batch, whole.micro_batch);
  EXPECT_EQ(plan.micro_batch * plan.micros, config.train.batch);
  EXPECT_LE(plan.predicted_peak(), plan.budget);
}

// Four stages with two layers each, and eight micro-batches.
TEST_F(Planner, APipelinesStepCountsWhatStagesWaitForEachOther) {
  config.model.shape.layers = 8;
  config.model.shape.tied = false;
  config.train.batch = 8;
  config.train.micro_batch = 1;
  config.parallel.pipeline = 4;
  const auto with = [&](PipelineOrder schedule) {
    config.parallel.schedule = schedule;
    return make_plan(input_of(config));
  };
  const Plan plan = with(PipelineOrder::one_f_one_b), filled = with(PipelineOrder::zero_bubble);
  ASSERT_EQ(plan.predicted_stages.size(), 4u);
  for (const Simulation& stage : plan.predicted_stages) {
    EXPECT_EQ(stage.seconds, plan.predicted.seconds);
    EXPECT_GT(stage.waited_for_ranks, 0);
  }
  EXPECT_LT(filled.predicted.seconds, plan.predicted.seconds);
  EXPECT_EQ(to_json(plan, input_of(config))["predicted"]["stages"].size(), 4u);
}

TEST_F(Planner, WhatCannotFitIsRefusedWithItsBreakdown) {
  config.memory.ram = Bytes(1 << 20);
  try {
    make_plan(input_of(config));
    FAIL() << "a megabyte was enough";
  } catch (const UserError& error) {
    EXPECT_EQ(error.parts.key, "memory.ram");
    for (const char* kind : {"parameters", "gradients", "optimizer", "activations", "process"})
      EXPECT_NE(error.parts.expected.find(kind), std::string::npos) << error.what();
  }
}

TEST_F(Planner, MemoryIsCheckedAloneAsItIsForAPlan) {
  PlanInput input = input_of(config);
  input.memory.recompute = Recompute::none;
  input.micro_batch = 64;
  const Plan plan = make_plan(input, Measuring::forbidden);
  const int64_t least = process_bound(most_memory(plan.blocks, plan.micros, plan.strategy), input.process, input.memory).sum().value;
  for (const int64_t more : {-1, 1}) {
    input.memory.ram = Bytes(least + more * (64 << 10));
    if (more > 0) {
      EXPECT_NO_THROW(check_fits(input));
      EXPECT_NO_THROW(make_plan(input, Measuring::forbidden));
    } else {
      EXPECT_THROW(check_fits(input), DoesNotFit);
      EXPECT_THROW(make_plan(input, Measuring::forbidden), DoesNotFit);
    }
  }
}

TEST_F(Planner, TheProcessIsOneFigure) {
  PlanInput input = input_of(config);
  input.process = Bytes(int64_t{3} << 30);
  EXPECT_EQ(make_plan(input, Measuring::forbidden).process, input.process);
  const Bytes measured = measured_process();
  EXPECT_EQ(measured.value % (4 << 20), 0);
  EXPECT_EQ(with_data(input.process), input.process);
  EXPECT_GT(with_data(Bytes(0)), Bytes(0)) << "what takes more than the bound has room for counts";
}

TEST_F(Planner, MeasurementsAreMadeOnceAMachineAndShape) {
  Workload work{config.model.shape, {4, 32}};
  MachineSpeeds first = calibrate(work, {2, folder}), again = calibrate(work, {2, folder});
  EXPECT_EQ(first.flops, again.flops);
  EXPECT_EQ(first.memory_bandwidth, again.memory_bandwidth);
  EXPECT_TRUE(std::filesystem::exists(calibration_file()));
}

// Products of new shapes make the matrix library allocate buffers that stay. A later run takes its speeds from the cache, so
// it does not have these buffers yet when it plans.
TEST_F(Planner, WhatTheMatrixLibraryWillKeepIsKnownFromTheCalibration) {
  const Workload work{config.model.shape, {4, 32}};
  EXPECT_LE(library_buffers(work, 2).value, 1);
  calibrate(work, {2, folder});
  const Bytes kept = library_buffers(work, 2);
  EXPECT_GT(kept.value, 0);
  calibrate(work, {2, folder});
  EXPECT_EQ(library_buffers(work, 2), kept);
}

TEST_F(Planner, TheDiskTierIsMeasuredOnlyWhenAskedForAndOnce) {
  Workload work{config.model.shape, {4, 32}};
  EXPECT_EQ(calibrate(work, {2, folder}).spill_mixed, 0);
  MachineSpeeds first = calibrate(work, {2, folder, folder + "/not/made/yet"});
  EXPECT_GT(first.spill_read, 0);
  EXPECT_GT(first.spill_write, 0);
  EXPECT_GT(first.spill_mixed, 0);
  EXPECT_GT(first.load_updated.bytes_per_s, 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/not"));
  MachineSpeeds again = calibrate(work, {2, folder, folder});  // another folder of the same disk
  EXPECT_EQ(first.spill_mixed, again.spill_mixed);
  EXPECT_EQ(first.load_updated.wait_s, again.load_updated.wait_s);
}

TEST_F(Planner, StagingIsAmpleWhereWhatStreamsLeavesRoomForIt) {
  config.model.shape = {.family = &gpt2_family,
                        .layers = 4,
                        .hidden = 384,
                        .heads = 6,
                        .kv_heads = 6,
                        .ffn = 1536,
                        .vocab = 20000,
                        .context = 64};  // a layer has seven chunks, the table thirty: one block less in memory frees much room
  config.memory.spill = folder + "/spill";
  config.train.batch = config.train.micro_batch = 1;
  const auto plan_within = [&](int64_t ram) -> std::optional<Plan> {
    config.memory.ram = Bytes(ram);
    try {
      return make_plan(input_of(config), Measuring::forbidden);
    } catch (const UserError&) {
      return std::nullopt;
    }
  };
  constexpr int64_t kMore = int64_t{4} << 20;
  int64_t ram = int64_t{64} << 20;
  std::optional<Plan> plan;
  for (; !plan; ram += kMore) plan = plan_within(ram);  // up to the first budget that is enough
  EXPECT_EQ(plan->staging, Staging::scarce);
  EXPECT_FALSE(plan->blocks[1].streams_amply);
  const int64_t scarce = plan->blocks[1].stream_bytes;
  bool ample = false;
  double fastest = plan->predicted.seconds;
  for (; plan->strategy.spills(); ram += kMore) {  // up to the first plan without disk
    plan = plan_within(ram);
    ASSERT_TRUE(plan) << ram;
    EXPECT_LE(plan->predicted_peak(), plan->budget);
    EXPECT_LE(plan->predicted.seconds, fastest * 1.03) << "more memory, and slower: " << ram;
    fastest = std::min(fastest, plan->predicted.seconds);
    if (plan->staging == Staging::scarce || !plan->strategy.spills()) continue;
    ample = true;
    EXPECT_TRUE(plan->blocks[1].streams_amply);
    EXPECT_GT(plan->blocks[1].stream_bytes, scarce);
  }
  EXPECT_TRUE(ample);
  EXPECT_EQ(plan->staging, Staging::scarce) << "nothing streams";
}

TEST_F(Planner, MoreMicroBatchesThanCanBePlannedAreRefusedByName) {
  config.train.batch = 1'000'000'000;
  for (int64_t micro_batch : {0, 1}) {
    config.train.micro_batch = micro_batch;
    try {
      make_plan(input_of(config), Measuring::forbidden);
      FAIL();
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("train.batch: expected at most"), std::string::npos) << error.what();
    }
  }
}

TEST_F(Planner, ADamagedCacheIsMeasuredAgain) {
  std::filesystem::create_directories(calibration_file().parent_path());
  std::ofstream(calibration_file()) << "{\"broken";
  EXPECT_GT(calibrate({config.model.shape, {4, 32}}, {2, folder}).flops, 0);
}

// The report takes its warnings from plan.json.
TEST_F(Planner, APlanFromSpeedsOfABusyMachineWarnsInItsJson) {
  const PlanInput input = input_of(config);
  EXPECT_TRUE(to_json(make_plan(input), input)["warnings"].is_array());
  auto cache = parse_json(read_file(calibration_file()));
  for (auto& machine : cache)
    for (auto& entry : machine)
      entry = {{"value", entry.is_object() ? entry["value"] : entry}, {"until", int64_t{4'000'000'000}}, {"waited", 0.61}};
  write_file_atomically(calibration_file(), print_json(cache));
  const auto warnings = to_json(make_plan(input), input)["warnings"];
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].get<std::string>().find("61% of the time"), std::string::npos) << warnings;
}

TEST_F(Planner, ShorterStepsAndDroppedTokensArePlannedAsTheyAre) {
  config.model.shape.layers = 4;
  config.train.micro_batch = 16;
  const Plan whole = make_plan(input_of(config));
  const PlanInput plans_input = input_of(config);
  ShapePlans plans(plans_input, whole);
  EXPECT_EQ(&plans.at({64, 1, 64, 0}), &whole);
  const Plan half = plans.at({64, 1, 32, 0});
  EXPECT_EQ(half.micros, whole.micros);
  EXPECT_LT(half.predicted.seconds, 0.7 * whole.predicted.seconds);
  EXPECT_LT(half.predicted.peak_bytes, whole.predicted.peak_bytes);
  const Plan& cut = plans.at({64, 2, 32, 0});  // the same number of tokens, in shorter sequences
  EXPECT_EQ(cut.micro_batch, 32);
  EXPECT_EQ(cut.blocks[1].output_bytes, whole.blocks[1].output_bytes);

  config.token_dropping.pacing = {.from = 8, .to = 64, .step = 8, .over = 100};
  const Plan also_whole = make_plan(input_of(config));  // at the end of the run no token is dropped
  EXPECT_EQ(also_whole.predicted.peak_bytes, whole.predicted.peak_bytes);
  const PlanInput dropping_input = input_of(config);
  ShapePlans dropping(dropping_input, also_whole);
  EXPECT_EQ(&dropping.at({64, 1, 64, 64}), &also_whole);
  const Plan& few = dropping.at({64, 1, 64, 16});
  EXPECT_LT(few.blocks[2].forward.flop, 0.3 * whole.blocks[2].forward.flop);
  EXPECT_EQ(few.blocks[1].forward.flop, whole.blocks[1].forward.flop);  // the first layer processes all tokens
  EXPECT_LT(few.predicted.peak_bytes, whole.predicted.peak_bytes);
  config.token_dropping.pacing.to = 32;
  const Plan always = make_plan(input_of(config));  // every step drops tokens, so the plan needs less memory
  EXPECT_LT(always.predicted.peak_bytes, whole.predicted.peak_bytes);
}

TEST_F(Planner, AStepsShapeIsThatOfARunWithoutACurriculum) {
  config.model.shape.layers = 4;
  config.curriculum = {{.metric = "length", .apply = CurriculumApply::reshape, .hold = Hold::tokens,
                        .pacing = {.from = 16, .to = 64, .step = 16, .over = 100}}};
  config.token_dropping.pacing = {.from = 8, .to = 64, .step = 8, .over = 100};
  const PlanInput input = input_of(config);
  EXPECT_GT(input.shapes.size(), 3u);
  EXPECT_EQ(input.dropping_layers, (std::vector<int64_t>{1, 2}));
  Config plain = config;
  plain.curriculum.clear();
  plain.token_dropping = {};
  plain.train.batch = 256;
  plain.data.sequence = 16;
  const PlanInput short_steps = input.for_shape({.samples = 64, .pieces = 4, .length = 16, .pace = 64});
  EXPECT_EQ(short_steps.shapes, input_of(plain).shapes);
  EXPECT_EQ(short_steps.rank_batch(), 256);
  EXPECT_TRUE(short_steps.dropping_layers.empty()) << "all tokens are kept";
  EXPECT_EQ(input.for_shape({.samples = 64, .length = 32, .pace = 8}).dropping_layers, input.dropping_layers);
}

// Many short sequences that drop nothing may need more memory than the few long sequences at the end, which drop tokens.
TEST_F(Planner, NoStepOfACurriculumNeedsMoreThanThePlanSays) {
  config.model.shape.layers = 4;
  config.train.micro_batch = 16;
  for (Hold hold : {Hold::sequences, Hold::tokens})
    for (double from : {1, 5, 8, 32})
      for (double kept : {4, 8, 20, 64}) {
        config.curriculum = {{.metric = "length", .apply = CurriculumApply::truncate, .hold = hold,
                              .pacing = {.from = from, .to = 64, .step = 1, .over = 100}}};
        config.token_dropping.pacing = {.from = 4, .to = kept, .step = 4, .over = 50};
        const Plan plan = make_plan(input_of(config));
        const PlanInput plans_input = input_of(config);
  ShapePlans plans(plans_input, plan);
        for (const auto& [step, shape] : StepShapes(config, config.model.shape.layers).changes(200))
          EXPECT_LE(plans.at(shape).predicted.peak_bytes, plan.predicted.peak_bytes)
              << "step " << step << ": " << shape.sequences() << " of " << shape.length << ", kept " << shape.kept();
      }
}

}  // namespace
}  // namespace megalith

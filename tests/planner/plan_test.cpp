#include "planner/plan.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "memory/allocator.h"
#include "planner/calibration.h"

namespace megalith {
namespace {

struct Planner : testing::Test {
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/planner-XXXXXX";
    folder = mkdtemp(pattern.data());
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    install_allocator();
    config.run.dir = folder;
    config.model.shape = {Arch::llama, 2, 64, 4, 2, 128, 500, 64};
    config.model.shape.tied = true;
    config.data.sequence = 64;
    config.train.batch = 64;
    config.train.threads = 2;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string folder;
  Config config;
};

TEST_F(Planner, ALargeBudgetTakesTheLargestMicroBatchThatPays) {
  Plan plan = make_plan(config);
  EXPECT_EQ(plan.micro_batch, 64);  // 4,096 tokens at once
  EXPECT_EQ(plan.micros, 1);
  EXPECT_GT(plan.predicted.seconds, 0);
  EXPECT_LE(plan.predicted_peak(), plan.budget);
}

TEST_F(Planner, ASmallerBudgetTakesASmallerMicroBatchThatFits) {
  make_plan(config);  // what is measured first brings buffers of libraries that stay: the process grows by them
  Plan whole = make_plan(config);
  config.memory.ram = Bytes(whole.predicted_peak().value - whole.predicted.peak_bytes / 4);
  Plan plan = make_plan(config);
  EXPECT_LT(plan.micro_batch, whole.micro_batch);
  EXPECT_EQ(plan.micro_batch * plan.micros, config.train.batch);
  EXPECT_LE(plan.predicted_peak(), plan.budget);
}

TEST_F(Planner, WhatCannotFitIsRefusedWithItsBreakdown) {
  config.memory.ram = Bytes(1 << 20);
  try {
    make_plan(config);
    FAIL() << "a megabyte was enough";
  } catch (const UserError& error) {
    EXPECT_EQ(error.parts.key, "memory.ram");
    for (const char* kind : {"parameters", "gradients", "optimizer", "activations", "process"})
      EXPECT_NE(error.parts.expected.find(kind), std::string::npos) << error.what();
  }
}

TEST_F(Planner, MeasurementsAreMadeOnceAMachineAndShape) {
  Workload work{config.model.shape, {4, 32}};
  MachineSpeeds first = calibrate(work, 2, folder), again = calibrate(work, 2, folder);
  EXPECT_EQ(first.flops, again.flops);
  EXPECT_EQ(first.memory_bandwidth, again.memory_bandwidth);
  EXPECT_TRUE(std::filesystem::exists(calibration_file()));
}

TEST_F(Planner, TheDiskTierIsMeasuredOnlyWhenAskedForAndOnce) {
  Workload work{config.model.shape, {4, 32}};
  EXPECT_EQ(calibrate(work, 2, folder).spill_mixed, 0);
  MachineSpeeds first = calibrate(work, 2, folder, folder + "/not/made/yet");
  EXPECT_GT(first.spill_read, 0);
  EXPECT_GT(first.spill_write, 0);
  EXPECT_GT(first.spill_mixed, 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/not"));
  MachineSpeeds again = calibrate(work, 2, folder, folder);  // another folder of the same disk
  EXPECT_EQ(first.spill_mixed, again.spill_mixed);
}

TEST_F(Planner, ADamagedCacheIsMeasuredAgain) {
  std::filesystem::create_directories(calibration_file().parent_path());
  std::ofstream(calibration_file()) << "{\"broken";
  EXPECT_GT(calibrate({config.model.shape, {4, 32}}, 2, folder).flops, 0);
}

}  // namespace
}  // namespace megalith

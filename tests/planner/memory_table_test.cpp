#include "planner/memory_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/block_store.h"
#include "engine/engine.h"
#include "engine/state_pieces.h"
#include "families/family.h"
#include "families/list.h"
#include "memory/allocator.h"
#include "memory/spill_file.h"
#include "planner/budget.h"
#include "planner/input.h"
#include "planner/measurements.h"
#include "planner/own_cache.h"
#include "schedule/passes/input_offload.h"

namespace megalith {
namespace {

struct Table : OwnCache {
  void SetUp() override {
    OwnCache::SetUp();
    install_allocator();
    config.run.dir = folder;
    config.model.shape = {&gpt2_family, 6, 256, 4, 4, 0, 1024, 2000, 64};
    config.model.shape.tied = true;
    config.data.sequence = 64;
    config.train.batch = 16;
    config.train.micro_batch = 8;
    config.train.threads = 1;
  }

  // A table uses measurements that exist, and does not measure.
  Plan plan() const { return make_plan(input_of(config), Measuring::forbidden); }
  // Sets a budget with room for `share` of all tensors.
  void budget(double share) {
    const Plan whole = plan();
    const double tensors = static_cast<double>(memory_table(whole).plain.total());
    config.memory.ram = process_bound(static_cast<int64_t>(share * tensors), whole.process, whole.memory).sum();
  }

  Config config;
};

TEST_F(Table, WithoutAdaptingItIsThePlainStepAndNothingIsOnDisk) {
  const Plan whole = plan();
  EXPECT_FALSE(whole.measured);
  const MemoryTable table = memory_table(whole);
  EXPECT_TRUE(table.fits);
  EXPECT_EQ(table.plain.bytes, table.planned.bytes);
  EXPECT_EQ(table.disk.total(), 0);
  EXPECT_LE(table.planned.total() + table.bound.process.value, table.bound.sum().value);
  EXPECT_FALSE(std::filesystem::exists(calibration_file()));
}

TEST_F(Table, WhatIsOnDiskIsWhatTheStoreTakes) {
  config.memory.recompute = Recompute::full;
  int64_t moments = std::numeric_limits<int64_t>::max();
  for (Packing state : {Packing::fp32, Packing::bf16, Packing::int8}) {
    config.train.optimizer_state = state;
    config.memory.spill.clear();
    config.memory.ram.reset();
    budget(0.5);
    config.memory.spill = folder + "/spill";
    const Plan spilled = plan();
    ASSERT_TRUE(spilled.strategy.spills());
    const MemoryTable table = memory_table(spilled);
    EXPECT_GT(table.disk.total(), 0);
    EXPECT_LT(table.planned.total(), table.plain.total());
    EXPECT_LE(table.bound.sum(), *config.memory.ram);
    EXPECT_LT(table.plain[MemoryKind::optimizer], moments);
    moments = table.plain[MemoryKind::optimizer];
    Engine engine(config.model.shape, config.train, 1, true,
                  {spilled.strategy.placement, config.memory.spill, offloaded_input_bytes(spilled.step), spilled.micros});
    // They may differ by up to a chunk per array, because of the alignment between parameters.
    EXPECT_NEAR(static_cast<double>(engine.store()->bytes()), static_cast<double>(table.disk.total()),
                static_cast<double>(4 * spilled.blocks.size() * kSpillChunk));
    EXPECT_GE(engine.store()->bytes(), table.disk.total());
    int64_t bytes = 0;
    for (BlockId b = 0; b < static_cast<BlockId>(spilled.blocks.size()); b++) bytes += engine.state().optimizer_bytes(b);
    EXPECT_EQ(table.plain[MemoryKind::optimizer], bytes);
  }
}

TEST_F(Table, AShortfallNamesSettingsEachOfWhichFits) {
  budget(0.85);
  config.memory.recompute = Recompute::none;
  try {
    plan();
    FAIL() << "fits";
  } catch (const DoesNotFit& error) {
    const MemoryTable table = memory_table(error.shortfall);
    EXPECT_FALSE(table.fits);
    EXPECT_GT(table.bound.sum(), table.budget);
    EXPECT_FALSE(table.suggestions.empty());
    for (const Suggestion& each : table.suggestions) {
      EXPECT_LE(each.bytes, table.budget) << each.setting;
      EXPECT_NE(show(table).find(each.setting), std::string::npos);
    }
    EXPECT_EQ(to_json(table).at("ways").size(), table.suggestions.size());
  }
}

}  // namespace
}  // namespace megalith

#include "planner/strategy.h"

#include <gtest/gtest.h>

#include "config/presets.h"
#include "families/facts.h"
#include "schedule/check/checker.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/passes/save.h"
#include "schedule/op_type.h"
#include "schedule/passes/residency.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

std::vector<BlockFacts> facts_of(const char* preset, int64_t sequences, int64_t length, int64_t micros) {
  ModelShape shape = find_preset(preset).shape;
  fill_defaults(shape);
  auto blocks = block_facts(shape, {sequences, length, 1.0, micros}, Precision::fp32);
  for (BlockFacts& block : blocks) {
    block.optimizer_bytes = 8 * block.parameters;
    block.stream_bytes = 12 * kMiB;
  }
  return blocks;
}

TEST(Strategy, WhatFitsAsItIsIsLeftAsItIs) {
  const auto blocks = facts_of("gpt2-124m", 4, 256, 1);
  MemorySettings memory;
  memory.spill = "disk";
  const auto found = fitting_strategies(blocks, 1, {memory, 64 * 1024 * kMiB});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found.front().spills());
  EXPECT_FALSE(found.front().recomputes());
}

TEST(Strategy, EveryBudgetIsKeptAndMoreMemoryMovesLess) {
  const auto blocks = facts_of("gpt2-355m", 2, 256, 4);
  MemorySettings memory;
  memory.spill = "disk";
  int64_t before = std::numeric_limits<int64_t>::max();
  bool partial = false;
  for (int64_t room : {700, 900, 1200, 2000, 3000, 4000, 5000}) {
    const auto found = fitting_strategies(blocks, 4, {memory, room * kMiB});
    ASSERT_FALSE(found.empty()) << room;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Strategy& strategy : found) {
      const Schedule step = with_save(training_schedule(blocks, 4, strategy));
      const auto problems = check(step, Bytes(room * kMiB));
      EXPECT_TRUE(problems.empty()) << room << ": " << problems.front().reason;
      const Traffic traffic = traffic_of(training_schedule(blocks, 4, strategy));
      least = std::min(least, traffic.read + traffic.written);
      const auto in_memory = std::count(strategy.placement.begin(), strategy.placement.end(), Placement::in_memory);
      partial |= strategy.spills() && in_memory > 1 && in_memory < std::ssize(strategy.placement);
    }
    EXPECT_LE(least, before) << room;
    before = least;
  }
  EXPECT_TRUE(partial) << "some budgets hold a part of the blocks";
}

StrategyLimits with_device(int64_t host, int64_t device) {  // bytes
  StrategyLimits limits;
  limits.memory.spill = "disk";
  limits.room = host;
  limits.device = device;
  limits.layout.device = true;
  return limits;
}

TEST(Strategy, BothBudgetsOfADeviceAndItsHostAreKeptAndMoreOfTheDeviceMovesLess) {
  const auto blocks = facts_of("gpt2-355m", 2, 256, 4);
  int64_t before = std::numeric_limits<int64_t>::max();
  bool all_at_home = false, on_disk = false, parked = false;
  const Strategy tightest = tightest_strategy(blocks, 4, with_device(0, 0));
  const int64_t host_least = most_memory(blocks, 4, tightest), device_least = most_memory(blocks, 4, tightest, Tier::device);
  constexpr int64_t kPlenty = 8192 * kMiB;
  for (int64_t device : {device_least, device_least * 5 / 4, device_least * 2, 6 * device_least}) {
    for (int64_t host : {host_least, 2048 * kMiB, kPlenty}) {
      const auto found = fitting_strategies(blocks, 4, with_device(host, device));
      ASSERT_FALSE(found.empty()) << host << ", " << device;
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const Strategy& strategy : found) {
        const Schedule step = with_save(training_schedule(blocks, 4, strategy));
        const auto problems = check(step, Bytes(host), Bytes(device));
        EXPECT_TRUE(problems.empty()) << host << ", " << device << ": " << problems.front().reason;
        int64_t copied = 0;
        for (const Op& op : step.ops) copied += traffic_of(step, op).copied;
        least = std::min(least, copied);
        all_at_home |= strategy.placement.empty();
        on_disk |= strategy.ahead > 0;
        parked |= !strategy.offloads.empty();
      }
      if (host == kPlenty) {
        EXPECT_LE(least, before) << device;
        before = least;
      }
    }
  }
  EXPECT_TRUE(all_at_home && on_disk);
  EXPECT_TRUE(parked) << "the smallest device keeps no inputs of layers";
  EXPECT_TRUE(fitting_strategies(blocks, 4, with_device(kPlenty, device_least - kMiB)).empty());
  // (If inputs are not offloaded, the host needs less memory than with the tightest strategy.)
  EXPECT_TRUE(fitting_strategies(blocks, 4, with_device(host_least / 2, 6 * device_least)).empty());
}

TEST(Strategy, AnythingAwayMovesThirtySixBytesAParameter) {
  const auto blocks = facts_of("llama-110m", 1, 256, 4);
  MemorySettings memory;
  memory.spill = "disk";
  Strategy tightest = tightest_strategy(blocks, 4, {memory, 0});
  tightest.offloads = {};  // only state is on disk
  const Schedule step = training_schedule(blocks, 4, tightest);
  int64_t parameters = 0;
  for (size_t b = 1; b + 1 < blocks.size(); b++) parameters += blocks[b].parameters;
  Traffic layers;
  for (const Op& op : step.ops)
    if (op.block > 0 && op.block + 1 < static_cast<BlockId>(blocks.size())) {
      const Traffic one = traffic_of(step, op);
      layers.read += one.read;
      layers.written += one.written;
    }
  EXPECT_EQ(layers.read, 20 * parameters);     // p, g, m, v; p again for backward
  EXPECT_EQ(layers.written, 16 * parameters);  // p, m, v; g
}

TEST(Strategy, WithoutADiskLayersAreRecomputedUntilItFits) {
  const auto blocks = facts_of("gpt2-124m", 16, 256, 1);
  Strategy plain;
  const int64_t all = most_memory(blocks, 1, plain);
  MemorySettings memory;
  const auto found = fitting_strategies(blocks, 1, {memory, all * 3 / 4});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_LE(most_memory(blocks, 1, found.front()), all * 3 / 4);
  const auto again = [&](const std::vector<Keep>& keep) { return keep_cost(blocks, 1, ComputeOrder::by_micro, keep).flop; };
  EXPECT_GT(again(found.front().keep), 0);
  EXPECT_LT(again(found.front().keep), 0.9 * again(recompute_all(blocks))) << "no more than need be";
  memory.recompute = Recompute::none;
  EXPECT_TRUE(fitting_strategies(blocks, 1, {memory, all * 3 / 4}).empty()) << "what was asked for is kept";
}

// With a long sequence or many micro-batches, the inputs that layers keep for recomputation need too much memory.
TEST(Strategy, InputsOfLayersParkWhereNothingElseFits) {
  const auto offloads = [](const Strategy& s) { return std::count(s.offloads.begin(), s.offloads.end(), true); };
  struct Case {
    int64_t sequences, length, micros;
  };
  for (const Case& c : {Case{1, 1024, 64}, Case{1, 16384, 1}}) {
    auto blocks = facts_of("gpt2-124m", c.sequences, c.length, c.micros);
    for (BlockFacts& block : blocks) block.input_offload_bytes = 4 * kMiB;
    const auto micros = static_cast<int32_t>(c.micros);
    MemorySettings memory;
    memory.spill = "disk";
    Strategy unparked = tightest_strategy(blocks, micros, {memory, 0});
    const int64_t tight = most_memory(blocks, micros, unparked);
    unparked.offloads = {};
    const int64_t before = most_memory(blocks, micros, unparked);
    EXPECT_LT(tight, before * 4 / 5);  // the rest is needed while one layer is recomputed
    const int64_t room = (tight + before) / 2;
    const auto found = fitting_strategies(blocks, micros, {memory, room});
    ASSERT_FALSE(found.empty());
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const Strategy& strategy : found) {
      const Schedule step = with_save(training_schedule(blocks, micros, strategy));
      const auto problems = check(step, Bytes(room));
      EXPECT_TRUE(problems.empty()) << problems.front().reason;
      if (strategy.offloads.empty()) continue;
      fewest = std::min<int64_t>(fewest, offloads(strategy));
      Traffic moved;
      for (const Op& op : step.ops)
        if (op.kind == ops::offload_input || op.kind == ops::reload_input) {
          moved.read += traffic_of(step, op).read;
          moved.written += traffic_of(step, op).written;
        }
      EXPECT_EQ(moved.written, offloads(strategy) * c.micros * blocks[1].output_bytes);
      EXPECT_EQ(moved.read, moved.written);
    }
    EXPECT_GT(fewest, 0);
    EXPECT_LT(fewest, 12) << "no more than need be";
    memory.recompute = Recompute::none;
    EXPECT_TRUE(fitting_strategies(blocks, micros, {memory, room}).empty()) << "what was asked for is kept";
  }
}

TEST(Strategy, IsSaidInWords) {
  Strategy strategy;
  EXPECT_EQ(describe(strategy), "");
  strategy.keep = {Keep::all, Keep::input, Keep::input, Keep::all};
  strategy.placement = {Placement::in_memory, Placement::on_disk, Placement::on_disk, Placement::optimizer_on_disk};
  strategy.window = 2;
  EXPECT_EQ(describe(strategy), "full recompute, 2 of 4 blocks on disk, moments of 1 block on disk, window 2");
  strategy.offloads = {false, true, false, false};
  strategy.placement = {};
  EXPECT_EQ(describe(strategy), "full recompute, inputs of 1 layers on disk");
  strategy.offloads = {};
  strategy.keep = {Keep::all, Keep::attention, Keep::input, Keep::none, Keep::all};
  EXPECT_EQ(describe(strategy), "1 of 3 layers recomputed selectively, 2 of 3 layers recomputed in chains");
  strategy.keep = {Keep::all, Keep::attention, Keep::attention, Keep::all};
  EXPECT_EQ(describe(strategy), "selective recompute");
}

}  // namespace
}  // namespace megalith

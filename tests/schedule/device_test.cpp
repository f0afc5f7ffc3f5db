// Blocks that are computed on a device: uploads, downloads, and the device memory that they need.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/check/checker.h"
#include "schedule/predict/memory.h"
#include "schedule/random_schedules.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

constexpr Placement M = Placement::in_memory, O = Placement::optimizer_on_disk, A = Placement::on_disk;

RankLayout on_device() {
  RankLayout layout;
  layout.device = true;
  return layout;
}

Schedule step_on_device(int32_t blocks, std::vector<Placement> placement, int32_t window, int32_t ahead = 0,
                        int32_t micros = 2) {
  return with_residency(training_step(make_blocks(blocks, true), micros, ComputeOrder::by_block, {}, on_device()),
                        std::move(placement), window, ahead);
}

int64_t count(const Schedule& schedule, OpKind kind) {
  return std::count_if(schedule.ops.begin(), schedule.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

MemoryBound bound(const Schedule& schedule, Tier tier) { return memory_bound(schedule, HappensBefore(schedule), tier); }

TEST(Device, CopiesHaveLanesOfTheirOwn) {
  const Schedule step = step_on_device(6, {}, 2);
  ASSERT_TRUE(check(step).empty());
  for (const Op& op : step.ops) {
    EXPECT_EQ(op.lane == Lane::upload, op.kind == ops::upload);
    EXPECT_EQ(op.lane == Lane::download, op.kind == ops::download || op.kind == ops::gradient_norm);
  }
  EXPECT_EQ(count(step, ops::download), 6);
}

TEST(Device, AWindowAsLongAsTheStepUploadsEveryBlockOnce) {
  // With a window of one, blocks are uploaded for forward and for backward. The last layer and the head are uploaded once,
  // because their uses follow each other.
  EXPECT_GT(count(step_on_device(8, {}, 1), ops::upload), 8);
  EXPECT_EQ(count(step_on_device(8, {}, 16), ops::upload), 8);
}

TEST(Device, TheWindowBoundsTheDevicesMemoryAndTheHostsIsWhatItWas) {
  int64_t before = 0;
  for (int32_t window : {1, 2, 4, 16}) {
    const Schedule step = step_on_device(12, {}, window);
    const int64_t bytes = bound(step, Tier::device).bytes;
    EXPECT_GT(bytes, before) << window;
    before = bytes;
    // Parameters, gradients and moments: 16 bytes per parameter, and nothing else.
    int64_t state = 0;
    for (const BlockFacts& block : step.blocks) state += 16 * block.parameters;
    EXPECT_EQ(bound(step, Tier::host).bytes, state) << window;
  }
  // With a window of one, the device holds the tied table and its gradient, the parameters of the current and of the next
  // block, and two gradients.
  const int64_t parameters = 4 * 1011;
  EXPECT_LT(bound(step_on_device(12, {}, 1, 0, 1), Tier::device).bytes, 6 * parameters + 12 * (701 + 101) + 1000);
}

// The optimizer state of a block is on disk, so its gradient waits on the host until load_updated applies the update.
TEST(Device, ANormOfTheGradientThatWaitsForAnUpdateIsCaught) {
  Schedule step = step_on_device(4, {M, O, M, M}, 2);
  ASSERT_TRUE(check(step).empty());
  // Move the norm to the beginning, and make the update wait for it.
  const auto norm = std::ranges::find_if(step.ops, [](const Op& op) { return op.kind == ops::gradient_norm && op.block == 1; });
  const auto at = static_cast<OpId>(norm - step.ops.begin());
  std::rotate(step.ops.begin(), norm, norm + 1);
  for (Op& op : step.ops)
    for (OpId& after : op.after) after = after == at ? 0 : after < at ? after + 1 : after;
  step.ops.front().after.clear();
  for (Op& op : step.ops)
    if (op.kind == ops::load_updated) op.after.push_back(0);
  const auto problems = check(step);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().reason, "gradient norm of layer 0 uses the reduced gradient of layer 0 of the step before");
}

TEST(Device, TheCheckerHoldsTheDeviceToItsBudget) {
  const Schedule step = step_on_device(6, {A, A, O, M, A, A}, 2, 1);
  const int64_t bytes = bound(step, Tier::device).bytes;
  EXPECT_TRUE(check(step, std::nullopt, Bytes(bytes)).empty());
  const auto problems = check(step, std::nullopt, Bytes(bytes - 1));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems.front().reason.find("device's memory"), std::string::npos) << problems.front().reason;
}

TEST(Device, WhatIsOnDiskComesHomeBeforeItIsUploaded) {
  for (int32_t ahead : {0, 1, 3}) {
    const Schedule step = step_on_device(8, std::vector<Placement>(8, A), 1, ahead);
    ASSERT_TRUE(check(step).empty());
    // Counts the uses between the moment when a block may be read and the moment when it may be uploaded.
    int64_t waits = 0;
    for (const Op& op : step.ops) {
      if (op.kind != ops::upload) continue;
      OpId home = kNoOp, turn = kNoOp;
      for (OpId after : op.after) {
        if (step.ops[after].lane == Lane::read) home = after;
        else turn = std::max(turn, after);
      }
      ASSERT_NE(home, kNoOp);
      if (turn == kNoOp || step.ops[home].after.empty()) continue;
      const OpId came = *std::max_element(step.ops[home].after.begin(), step.ops[home].after.end());
      waits += std::max(0, turn - came);
    }
    EXPECT_EQ(waits > 0, ahead > 0) << ahead;
  }
  EXPECT_GT(bound(step_on_device(8, std::vector<Placement>(8, A), 1, 3), Tier::host).bytes,
            bound(step_on_device(8, std::vector<Placement>(8, A), 1, 0), Tier::host).bytes);
}

TEST(Device, ParkedInputsWaitInTheHostsMemory) {
  auto blocks = make_blocks(10, false);
  for (BlockFacts& block : blocks) block.output_bytes = 10000;
  std::vector<Keep> keep(10, Keep::input);
  keep.front() = keep.back() = Keep::all;
  std::vector<bool> offloads(10);
  for (size_t b = 1; b < 9; b++) offloads[b] = true;
  const auto step_with = [&](std::vector<bool> some) {
    return with_residency(with_input_offload(training_step(blocks, 3, ComputeOrder::by_block, keep, on_device()), std::move(some)),
                          {}, 1);
  };
  const Schedule stays = step_with({}), goes = step_with(offloads);
  ASSERT_TRUE(check(goes).empty());
  EXPECT_TRUE(offloaded_input_bytes(goes).empty()) << "nothing of it is on disk";
  EXPECT_LT(bound(goes, Tier::device).bytes, bound(stays, Tier::device).bytes - 10 * 10000);
  EXPECT_GT(bound(goes, Tier::host).bytes, bound(stays, Tier::host).bytes + 10 * 10000);
  EXPECT_EQ(traffic_of(goes).written, 0);
}

TEST(Device, EverySingleDeletionIsCaught) {
  for (const Schedule& schedule : {with_save(step_on_device(4, {A, O, M, A}, 1, 1)), step_on_device(4, {}, 3)}) {
    ASSERT_TRUE(check(schedule).empty());
    for (size_t gone = 0; gone < schedule.ops.size(); gone++) {
      Schedule mutant = schedule;
      mutant.ops.clear();
      std::vector<OpId> place(schedule.ops.size(), kNoOp);
      for (size_t op = 0; op < schedule.ops.size(); op++) {
        if (op == gone) continue;
        Op copy = schedule.ops[op];
        copy.after.clear();
        for (OpId after : schedule.ops[op].after)
          if (place[static_cast<size_t>(after)] != kNoOp) copy.after.push_back(place[static_cast<size_t>(after)]);
        place[op] = static_cast<OpId>(mutant.ops.size());
        mutant.ops.push_back(std::move(copy));
      }
      EXPECT_FALSE(check(mutant).empty()) << describe(schedule, static_cast<OpId>(gone));
    }
  }
}

TEST(Device, ADeviceAndSeveralRanksAreNotMixed) {
  Schedule step = step_on_device(4, {}, 1);
  step.layout.mesh = Mesh({.data = 2});
  EXPECT_FALSE(check(step).empty());
}

}  // namespace
}  // namespace megalith

#include "schedule/passes/training_step.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "schedule/check/checker.h"
#include "schedule/fake_ranks.h"
#include "schedule/random_schedules.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

std::string listing(const Schedule& schedule) {
  std::string text;
  for (const Op& op : schedule.ops) text += describe(schedule, op) + "\n";
  return text;
}

// Returns all ops that an op waits for through `after`, without the order of the lanes.
std::set<OpId> reachable(const Schedule& schedule, OpId from) {
  std::set<OpId> found;
  std::vector<OpId> open(schedule.ops[from].after);
  while (!open.empty()) {
    const OpId op = open.back();
    open.pop_back();
    if (found.insert(op).second)
      open.insert(open.end(), schedule.ops[op].after.begin(), schedule.ops[op].after.end());
  }
  return found;
}

TEST(BasePass, AMicroBatchGoesForwardAndBackBeforeTheNextOneStarts) {
  EXPECT_EQ(listing(training_step(make_blocks(3, true), 2)),
            "count targets\n"
            "forward of embedding, micro-batch 0\n"
            "forward of layer 0, micro-batch 0\n"
            "loss of head, micro-batch 0\n"
            "backward of layer 0, micro-batch 0\n"
            "backward of embedding, micro-batch 0\n"
            "forward of embedding, micro-batch 1\n"
            "forward of layer 0, micro-batch 1\n"
            "loss of head, micro-batch 1\n"
            "gradient norm of head\n"
            "backward of layer 0, micro-batch 1\n"
            "gradient norm of layer 0\n"
            "backward of embedding, micro-batch 1\n"
            "embedding gradient of embedding\n"
            "gradient norm of embedding\n"
            "prepare update\n"
            "optimizer step of embedding\n"
            "optimizer step of layer 0\n"
            "optimizer step of head\n");
}

TEST(BasePass, AnEvaluationOnlyGoesForward) {
  EXPECT_EQ(listing(evaluation_step(make_blocks(2, false), 2)),
            "count targets\n"
            "forward of embedding, micro-batch 0\n"
            "forward of head, micro-batch 0\n"
            "forward of embedding, micro-batch 1\n"
            "forward of head, micro-batch 1\n");
}

TEST(BasePass, EveryShapeOfStepIsAccepted) {
  Random random(1);
  for (int i = 0; i < 300; i++) {
    const Schedule schedule = random_schedule(random);
    const auto problems = check(schedule);
    ASSERT_TRUE(problems.empty()) << problems.front().reason << "\n" << listing(schedule);
  }
}

TEST(BasePass, TheResultDoesNotDependOnTheSpeedOfTheLanes) {
  Random random(2);
  for (int i = 0; i < 100; i++) {
    const Schedule schedule = random_schedule(random);
    const auto expected = run_in_order(schedule);
    for (int run = 0; run < 5; run++) ASSERT_EQ(run_interleaved(schedule, random), expected) << listing(schedule);
  }
}

TEST(BasePass, DependenciesCarryTheDataFlowWhateverTheLanes) {
  Random random(3);
  for (int i = 0; i < 200; i++) {
    Schedule schedule = random_schedule(random);
    const auto expected = run_in_order(schedule);
    spread(schedule, random);
    const auto problems = check(schedule);
    ASSERT_TRUE(problems.empty()) << problems.front().reason;
    ASSERT_EQ(run_interleaved(schedule, random), expected);
  }
}

TEST(BasePass, NoDependencyFollowsFromTheOthers) {
  Random random(4);
  for (int i = 0; i < 60; i++) {
    const Schedule schedule = random_schedule(random);
    // Skip steps of with_residency and with_input_offload: they also name ops that the lanes imply, and ops that make room.
    if (!schedule.placement.empty() || !schedule.offloads.empty() || schedule.layout.device) continue;
    for (size_t op = 0; op < schedule.ops.size(); op++) {
      for (OpId after : schedule.ops[op].after) {
        EXPECT_LT(after, static_cast<OpId>(op)) << "only earlier ops are named";
        for (OpId other : schedule.ops[op].after) {
          EXPECT_FALSE(reachable(schedule, other).contains(after))
              << describe(schedule, static_cast<OpId>(op)) << " need not name " << describe(schedule, after);
        }
      }
    }
  }
}

TEST(BasePass, AModelWithoutAHeadIsABug) {
  EXPECT_THROW(training_step(make_blocks(1, false), 1), Bug);
  EXPECT_THROW(training_step(make_blocks(2, false), 0), Bug);
}

TEST(SavePass, ABlockGoesOutBeforeItsOwnUpdateAndWaitsForNothing) {
  const Schedule schedule = with_save(training_step(make_blocks(4, true), 3));
  for (BlockId block = 0; block < 4; block++) {
    const OpId save = find(schedule, ops::save, block);
    EXPECT_TRUE(schedule.ops[save].after.empty());
    EXPECT_EQ(schedule.ops[save].lane, Lane::write);
    const std::set<OpId> before_update = reachable(schedule, find(schedule, ops::optimizer_step, block));
    for (BlockId other = 0; other < 4; other++) {
      EXPECT_EQ(before_update.contains(find(schedule, ops::save, other)), other == block);
    }
    EXPECT_TRUE(reachable(schedule, find(schedule, ops::commit)).contains(save));
  }
}

TEST(SavePass, TheCheckpointHoldsTheStateBeforeTheStepAndTrainingIsTheSame) {
  const Schedule plain = training_step(make_blocks(4, true), 2), saving = with_save(plain);
  auto with = run_in_order(saving), without = run_in_order(plain);
  const auto saved = run_in_order(save_only(make_blocks(4, true)));
  constexpr size_t kCheckpoint = 3;  // index in FakeBlocks::state()
  EXPECT_EQ(with[kCheckpoint], saved[kCheckpoint]);
  EXPECT_NE(with[kCheckpoint], without[kCheckpoint]);
  with[kCheckpoint] = without[kCheckpoint];
  EXPECT_EQ(with, without);
}

TEST(SavePass, SavingTwiceIsABug) {
  EXPECT_THROW(with_save(with_save(training_step(make_blocks(2, false), 1))), Bug);
  EXPECT_THROW(with_save(evaluation_step(make_blocks(2, false), 1)), Bug);
}

}  // namespace
}  // namespace megalith

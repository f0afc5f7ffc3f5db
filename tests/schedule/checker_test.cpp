#include "schedule/check/checker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/random_schedules.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

Schedule step() { return with_save(with_updates_aside(training_step(make_blocks(3, true), 2))); }

std::string first_reason(const Schedule& schedule, std::optional<Bytes> budget = std::nullopt) {
  const auto problems = check(schedule, budget);
  return problems.empty() ? "accepted" : problems.front().reason;
}

void forget(Schedule& schedule, OpId op, OpId after) {
  auto& list = schedule.ops[op].after;
  ASSERT_EQ(std::erase(list, after), 1u);
}

TEST(Checker, AMissingOpIsNamed) {
  Schedule schedule = save_only(make_blocks(2, false));
  schedule.ops.pop_back();
  EXPECT_EQ(first_reason(schedule), "commit is missing");
}

TEST(Checker, ADoubledOpIsNamed) {
  Schedule schedule = step();
  schedule.ops.push_back(schedule.ops[find(schedule, ops::optimizer_step, 1)]);
  EXPECT_EQ(first_reason(schedule), "optimizer step of layer 0 is done more than once");
  EXPECT_EQ(check(schedule).front().op, static_cast<OpId>(schedule.ops.size()) - 1);
}

TEST(Checker, AnOpOfAnotherStepIsNamed) {
  Schedule schedule = step();
  schedule.ops[find(schedule, ops::backward, 0, 1)].micro = 7;
  EXPECT_EQ(first_reason(schedule), "backward of embedding, micro-batch 7 is not part of this step");
  schedule = step();
  schedule.ops[find(schedule, ops::gradient_norm, 0)].block = 12;
  EXPECT_EQ(first_reason(schedule), "gradient norm of block 12 is not part of this step");
}

TEST(Checker, FoldBelongsToTiedModelsOnly) {
  Schedule schedule = step();
  schedule.blocks.back().tied_to = kNoBlock;
  EXPECT_EQ(first_reason(schedule), "embedding gradient of embedding is not part of this step");
}

TEST(Checker, ShapesThatMakeNoSenseAreRefused) {
  Schedule schedule = step();
  schedule.micros = 0;
  EXPECT_EQ(first_reason(schedule), "a training step cannot have 0 micro-batches");
  schedule = evaluation_step(make_blocks(2, false), 1);
  schedule.micros = -1;
  EXPECT_EQ(first_reason(schedule), "a step cannot have -1 micro-batches");
  schedule = step();
  schedule.blocks.back().tied_to = 2;
  EXPECT_EQ(first_reason(schedule), "the head is tied to block 2, which is not an earlier block");
  schedule.blocks.resize(1);
  EXPECT_EQ(first_reason(schedule), "a model has at least an embedding and a head");
}

TEST(Checker, ADependencyOnNothingIsNamed) {
  Schedule schedule = step();
  schedule.ops[find(schedule, ops::prepare_update)].after.push_back(999);
  EXPECT_EQ(first_reason(schedule), "prepare update waits for op 999, which does not exist");
}

TEST(Checker, OpsThatWaitForEachOtherAreNamed) {
  Schedule schedule = step();
  const OpId save = find(schedule, ops::save, 1), update = find(schedule, ops::optimizer_step, 1);
  schedule.ops[save].after.push_back(update);
  EXPECT_EQ(first_reason(schedule),
            "optimizer step of layer 0 waits in a cycle, for save of layer 0, then for optimizer step of layer 0");
}

TEST(Checker, AWaitAgainstTheOrderOfTheLaneIsACircle) {
  Schedule schedule = step();  // the lane runs the embedding's save before the head's
  schedule.ops[find(schedule, ops::save, 0)].after.push_back(find(schedule, ops::save, 2));
  EXPECT_NE(first_reason(schedule).find("waits in a cycle"), std::string::npos);
}

TEST(Checker, AnOpListedBeforeWhatItWaitsForIsRefused) {
  Schedule schedule = step();
  schedule.ops[find(schedule, ops::save, 0)].after.push_back(find(schedule, ops::count_targets));
  EXPECT_EQ(first_reason(schedule), "save of embedding is listed before count targets, for which it waits");
}

TEST(Checker, AnUpdateThatDoesNotWaitForItsSaveIsARace) {
  Schedule schedule = step();
  forget(schedule, find(schedule, ops::optimizer_step, 2), find(schedule, ops::save, 2));
  EXPECT_EQ(first_reason(schedule),
            "optimizer step of head may run at the same time as save of head, and both use the parameters of head");
}

TEST(Checker, AnUpdateThatDoesNotWaitForClipIsARace) {
  Schedule schedule = step();
  forget(schedule, find(schedule, ops::optimizer_step, 0), find(schedule, ops::prepare_update));
  EXPECT_EQ(first_reason(schedule),
            "optimizer step of embedding may run at the same time as prepare update, and both use the "
            "update decision");
}

TEST(Checker, GradientsAddUpInTheOrderOfMicroBatches) {
  Schedule schedule = training_step(make_blocks(2, false), 2);
  for (Op& op : schedule.ops) {
    if (op.micro != kNoMicro) op.micro = 1 - op.micro;
  }
  EXPECT_EQ(first_reason(schedule),
            "loss of head, micro-batch 1 adds to the loss sum as contribution 1 instead of 2");
}

// Swaps the work of two ops. Each position keeps its lane and its `after`.
Schedule exchanged(OpKind a, BlockId block_a, OpKind b, BlockId block_b) {
  Schedule schedule = training_step(make_blocks(3, true), 1);
  auto micro = [](OpKind kind) { return kind <= ops::backward ? 0 : kNoMicro; };
  Op& first = schedule.ops[find(schedule, a, block_a, micro(a))];
  Op& second = schedule.ops[find(schedule, b, block_b, micro(b))];
  std::swap(first.kind, second.kind);
  std::swap(first.block, second.block);
  std::swap(first.micro, second.micro);
  return schedule;
}

TEST(Checker, ANormBeforeAllContributionsIsCaught) {
  EXPECT_EQ(first_reason(exchanged(ops::gradient_norm, 1, ops::backward, 1)),
            "gradient norm of layer 0 uses the gradient of layer 0 with 0 of 1 contributions");
}

TEST(Checker, ATiedTablesNormWaitsForFold) {
  EXPECT_EQ(first_reason(exchanged(ops::gradient_norm, 0, ops::embedding_gradient, 0)),
            "gradient norm of embedding uses the gradient of the tied table of embedding with 1 of 2 contributions");
}

TEST(Checker, AFoldNeedsWhatBackwardKeptAside) {
  EXPECT_EQ(first_reason(exchanged(ops::embedding_gradient, 0, ops::backward, 0)),
            "embedding gradient of embedding has no sparse gradient of embedding, micro-batch 0");
}

TEST(Checker, AForwardNeedsItsInput) {
  EXPECT_EQ(first_reason(exchanged(ops::forward, 0, ops::forward, 1)),
            "forward of layer 0, micro-batch 0 has no activation of embedding, micro-batch 0");
}

TEST(Checker, ABackwardNeedsTheGradientOfItsOutput) {
  EXPECT_EQ(first_reason(exchanged(ops::backward, 0, ops::backward, 1)),
            "backward of embedding, micro-batch 0 has no gradient of the output of embedding, micro-batch 0");
}

TEST(Checker, AClipBeforeTheLastNormIsCaught) {
  Schedule schedule = training_step(make_blocks(3, false), 1);
  std::swap(schedule.ops[find(schedule, ops::prepare_update)].kind,
            schedule.ops[find(schedule, ops::gradient_norm, 0)].kind);
  schedule.ops[find(schedule, ops::prepare_update, 0)].block = kNoBlock;
  schedule.ops[find(schedule, ops::gradient_norm)].block = 0;
  EXPECT_EQ(first_reason(schedule), "prepare update has no gradient norm of embedding");
}

TEST(Checker, ParametersMayNotChangeWhileTheyAreUsed) {
  Schedule schedule = with_save(training_step(make_blocks(2, false), 1));
  // Make the saves run after the updates instead of before them.
  for (Op& op : schedule.ops) {
    if (op.kind == ops::optimizer_step) std::erase_if(op.after, [](OpId after) { return after < 2; });
  }
  std::rotate(schedule.ops.begin(), schedule.ops.begin() + 3, schedule.ops.end());
  const OpId count = static_cast<OpId>(schedule.ops.size());
  for (Op& op : schedule.ops) {
    for (OpId& after : op.after) after = (after - 3 + count) % count;
  }
  const OpId save = find(schedule, ops::save, 0);
  schedule.ops[save].after = {find(schedule, ops::optimizer_step, 1)};
  EXPECT_EQ(first_reason(schedule),
            "save of embedding uses the parameters of embedding after the change for the next step");
}

TEST(Checker, WhatIsOnDiskIsFetchedOnlyWhenItWasRenewed) {
  Schedule schedule = with_residency(training_step(make_blocks(4, false), 2, ComputeOrder::by_block),
                                     std::vector<Placement>(4, Placement::on_disk), 1);
  ASSERT_EQ(first_reason(schedule), "accepted");
  std::swap(schedule.ops[find(schedule, ops::load_updated, 1)].kind, schedule.ops[find(schedule, ops::load, 1)].kind);
  EXPECT_EQ(first_reason(schedule), "load of layer 0 has no optimizer state of layer 0");
}

TEST(Checker, TheBudgetIsComparedWithTheWorstMoment) {
  // There are 3 blocks of 1000 to 1002 parameters, with 16 bytes per parameter including gradient and moments. The peak is
  // in the layer's backward: the tensors saved by two forwards, the embedding's output, the gradients of the layer's output
  // and input, and the workspace.
  const int64_t worst = 3003 * 16 + 2 * 701 + 3 * 101 + 31;
  const Schedule schedule = training_step(make_blocks(3, false), 4);
  EXPECT_EQ(first_reason(schedule, Bytes(worst)), "accepted");
  const auto problems = check(schedule, Bytes(worst - 1));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].reason.find("above the budget of"), std::string::npos);
}

TEST(Checker, ALargeModelWithManyMicroBatchesIsAccepted) {
  const Schedule schedule = with_save(training_step(make_blocks(98, true), 64));
  EXPECT_GT(schedule.ops.size(), 12'000u);
  EXPECT_EQ(first_reason(schedule, Bytes(1'000'000'000)), "accepted");
}

}  // namespace
}  // namespace megalith

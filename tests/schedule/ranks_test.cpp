// Schedules of several ranks: each alone passes the checker, and all of them meet.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "schedule/check/checker.h"
#include "schedule/predict/costs.h"
#include "schedule/random_layouts.h"
#include "schedule/predict/simulator.h"
#include "schedule/check/rank_checker.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

// Every rank's own check, and all together; the first problem or nothing.
std::string problem(const std::vector<BlockFacts>& blocks, int32_t micros, const RandomLayout& layout) {
  std::vector<Schedule> stages;
  for (int32_t stage = 0; stage < layout.stages; stage++) {
    stages.push_back(of_stage(blocks, micros, layout, stage));
    const auto problems = check(stages.back());
    if (!problems.empty()) return fmt::format("stage {}: {}", stage, problems.front().reason);
  }
  const auto problems = check_ranks(ranks_of(stages, layout));
  return problems.empty() ? "" : problems.front().reason;
}

TEST(Ranks, RandomLayoutsPassAndMeet) {
  Random random(71);
  std::set<std::string> seen;
  for (int i = 0; i < 600; i++) {
    const auto blocks = make_blocks(pick(random, 3, 9), pick(random, 0, 1) == 1);
    const int32_t micros = pick(random, 1, 9);
    const RandomLayout layout = random_layout(random, blocks);
    ASSERT_EQ(problem(blocks, micros, layout), "") << i << ": " << blocks.size() << " blocks, " << micros
                                                   << " micro-batches, " << layout.name();
    seen.insert(layout.name());
  }
  EXPECT_GT(seen.size(), 200u);
}

int count(const Schedule& schedule, OpKind kind) {
  return static_cast<int>(
      std::count_if(schedule.ops.begin(), schedule.ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

TEST(Ranks, AStageThatDoesNotStayGathersEachBlockOnceADirection) {
  // ZeRO 3 over a pipeline, four micro-batches: embedding and head once, layers twice, whatever the number.
  const auto blocks = make_blocks(8, false);
  const RandomLayout layout{.stages = 2, .replicas = 2, .zero = 3, .window = 1};
  int gathers = 0, reduces = 0;
  for (int32_t stage = 0; stage < 2; stage++) {
    const Schedule step = of_stage(blocks, 4, layout, stage);
    gathers += count(step, ops::gather_parameters);
    reduces += count(step, ops::reduce_gradient);
    EXPECT_EQ(count(step, ops::zero_gradient), count(step, ops::reduce_gradient));
  }
  // The last layer of the first stage is still there when it goes back; the second stage has its head in between.
  EXPECT_EQ(gathers, 8 + 6 - 1);
  EXPECT_EQ(reduces, 8);
}

TEST(Ranks, OneForwardOneBackwardKeepsAsManyAsThereAreStagesBehind) {
  const auto blocks = make_blocks(8, false);
  for (int32_t stage = 0; stage < 4; stage++) {
    const Schedule step = of_stage(blocks, 8, {.stages = 4}, stage);
    int now = 0, most = 0;
    const BlockId block = static_cast<BlockId>(
        std::find(step.layout.stages.of.begin(), step.layout.stages.of.end(), stage) - step.layout.stages.of.begin());
    for (const Op& op : step.ops) {
      if (op.block != block) continue;
      if (op.kind == ops::forward) most = std::max(most, ++now);
      if (op.kind == ops::backward) now--;
    }
    EXPECT_EQ(most, 4 - stage) << stage;
  }
}

// Live are what a layer's forward has begun and its weights have not ended.
TEST(Ranks, ZeroBubbleKeepsNoMoreThanTheFirstStageOfOneForwardOneBackward) {
  const auto blocks = make_blocks(8, false);
  for (int32_t stage = 0; stage < 4; stage++) {
    const Schedule step = of_stage(blocks, 8, {.stages = 4, .order = PipelineOrder::zero_bubble}, stage);
    std::map<BlockId, int> now;
    int most = 0, waiting = 0, most_waiting = 0;
    for (const Op& op : step.ops) {
      if (op.kind == ops::forward && step.defers(op.block)) most = std::max(most, ++now[op.block]);
      if (op.kind == ops::backward && step.defers(op.block)) most_waiting = std::max(most_waiting, ++waiting);
      if (op.kind != ops::weight_gradient) continue;
      now[op.block]--;
      waiting--;
    }
    EXPECT_LE(most, 4) << stage;
    EXPECT_EQ(waiting, 0);
    if (stage == 0) EXPECT_EQ(most_waiting, 1);  // nobody waits for its gradient: weights at once
    else EXPECT_GT(most_waiting, 1) << stage;
  }
}

// The step's seconds and what its stages wait for each other, by an order.
std::pair<double, double> step_and_waits(const std::vector<BlockFacts>& blocks, int32_t micros, const RandomLayout& layout) {
  const MachineSpeeds speeds{.flops = 1e9, .memory_bandwidth = 1e15, .links = on_every_axis({0, 1e15})};
  std::vector<Schedule> stages;
  std::vector<std::vector<Cost>> costs;
  for (int32_t stage = 0; stage < layout.stages; stage++) {
    stages.push_back(of_stage(blocks, micros, layout, stage));
    costs.push_back(predict_costs(stages.back(), speeds));
  }
  const std::vector<Simulation> all = simulate_ranks(ranks_of(stages, layout), costs);
  double waits = 0;
  for (const Simulation& one : all) {
    EXPECT_EQ(one.seconds, all.front().seconds);
    EXPECT_NEAR(one.busy[0] + one.waited_for_ranks, one.seconds, 0.02 * one.seconds);
    waits = std::max(waits, one.waited_for_ranks);
  }
  return {all.front().seconds, waits};
}

// Four equal stages of two layers, forward 2 and backward 4 ms a layer: the textbook's bubbles.
TEST(Ranks, BubblesAreThoseOfTheOrders) {
  auto blocks = make_blocks(10, false);
  for (BlockFacts* end : {&blocks.front(), &blocks.back()}) end->forward.flop = end->backward.flop = 0;
  constexpr int32_t kStages = 4, kMicros = 8;
  constexpr double kWork = kMicros * 12e-3, kOne = 12e-3;  // of a stage; of a micro-batch there
  const auto seconds = [&](PipelineOrder order, int32_t pieces) {
    return step_and_waits(blocks, kMicros, {.stages = kStages, .pieces = pieces, .order = order}).first;
  };
  const double bound = kWork + (kStages - 1) * kOne;  // a micro-batch's way forward and back through the other stages
  EXPECT_NEAR(seconds(PipelineOrder::gpipe, 1), bound, 0.02 * bound);
  EXPECT_NEAR(seconds(PipelineOrder::one_f_one_b, 1), bound, 0.02 * bound);
  EXPECT_LT(seconds(PipelineOrder::interleaved, 2), 0.97 * bound);
  // Forward 4, backward 4, weights 4 ms. Weights fill the bubble, at best but for one part of three; with as few
  // micro-batches at a time as here, but for some more than that.
  const double left = seconds(PipelineOrder::zero_bubble, 1) - kWork;
  EXPECT_GE(left, (kStages - 1) * kOne / 3 - 1e-6);
  EXPECT_LT(left, 0.6 * (kStages - 1) * kOne);
}

TEST(Ranks, RandomLayoutsAreSimulatedToTheirEnd) {
  Random random(19);
  for (int i = 0; i < 200; i++) {
    const auto blocks = make_blocks(pick(random, 3, 9), pick(random, 0, 1) == 1);
    const RandomLayout layout = random_layout(random, blocks);
    std::vector<Schedule> stages;
    std::vector<std::vector<Cost>> costs;
    for (int32_t stage = 0; stage < layout.stages; stage++) stages.push_back(of_stage(blocks, 4, layout, stage));
    const std::vector<RankSchedule> ranks = ranks_of(stages, layout);
    for (const RankSchedule& rank : ranks) {
      costs.emplace_back();
      for (size_t op = 0; op < rank.schedule->ops.size(); op++)
        costs.back().push_back({.seconds = 1e-3 * pick(random, 0, 5), .use = {}});
    }
    const std::vector<Simulation> all = simulate_ranks(ranks, costs);
    // Nothing is done sooner than by itself.
    for (size_t r = 0; r < ranks.size(); r++)
      EXPECT_GE(all[r].seconds, simulate(*ranks[r].schedule, costs[r]).seconds - 1e-9) << layout.name();
  }
}

TEST(Ranks, StagesAreBalancedByCost) {
  auto blocks = make_blocks(10, false);
  blocks.back().forward.flop = 8e6;  // a head as dear as four layers
  blocks.back().backward.flop = 16e6;
  blocks.front().forward.flop = blocks.front().backward.flop = 0;
  const auto stages = balanced_stages(blocks, 3);
  std::map<int32_t, double> cost;
  for (size_t b = 0; b < blocks.size(); b++) cost[stages[b]] += blocks[b].forward.flop + blocks[b].backward.flop;
  EXPECT_LE(std::max({cost[0], cost[1], cost[2]}), 24e6 + 1);
}

TEST(Ranks, ExpertsAreSlicedOverTheRanksThatHaveTheSame) {
  auto blocks = make_blocks(4, false);
  blocks[1].parameters = 1000;
  blocks[1].expert_parameters = 800;
  blocks[1].optimizer_bytes = 8000;
  blocks[1].expert_optimizer_bytes = 6400;
  const Schedule step = of_stage(blocks, 2, {.replicas = 4, .zero = 1, .expert = 2}, 0);
  EXPECT_EQ(step.slice_elements(1), 200 / 4 + 800 / 2);
  EXPECT_EQ(step.optimizer_slice_bytes(1), 1600 / 4 + 6400 / 2);
  EXPECT_EQ(step.slice_elements(2), (step.blocks[2].parameters + 3) / 4);
  const Schedule whole = of_stage(blocks, 2, {.replicas = 4, .expert = 2}, 0);
  EXPECT_EQ(whole.slice_elements(1), 1000);
  // Of 200 elements each of four ranks sends its quarter to three others, twice. Nothing of the experts is summed where no
  // two ranks have the same.
  const MachineSpeeds speeds{.flops = 1e9, .memory_bandwidth = 1e9, .links = on_every_axis({0, 1e9})};
  const auto seconds = [&](int32_t expert) {
    const Schedule one = of_stage(blocks, 1, {.replicas = 4, .expert = expert}, 0);
    return predict_costs(one, speeds)[static_cast<size_t>(find(one, ops::reduce_gradient, 1, kNoMicro))].seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(4), 2 * 3 * 200 / 1e9);
  EXPECT_DOUBLE_EQ(seconds(2), (2 * 3 * 200 + 2 * 2 * 800) / 1e9);
}

// Rows travel while a layer runs: ranks that have its experts between them run it at the same time.
TEST(Ranks, LayersWithExpertsRunTogetherOrAreFound) {
  const auto blocks = make_blocks(5, false);
  const RandomLayout layout{.replicas = 4, .expert = 2};
  const Schedule step = of_stage(blocks, 2, layout, 0);
  const std::vector<Schedule> stages{step};
  const std::vector<RankSchedule> ranks = ranks_of(stages, layout);
  const auto problem_with = [&](const Schedule& other, size_t rank) {
    std::vector<RankSchedule> some;
    for (const RankSchedule& it : ranks)
      some.push_back({some.size() == rank ? &other : &step, it.column, it.tensor_rank, it.experts});
    const auto problems = check_ranks(some);
    return problems.empty() ? std::string("none") : problems.front().reason;
  };
  EXPECT_EQ(problem_with(step, 1), "none");
  // One rank recomputes a layer that the others keep.
  RandomLayout again = layout;
  again.keep.assign(blocks.size(), Keep::all);
  again.keep[1] = Keep::input;
  const Schedule recomputes = of_stage(blocks, 2, again, 0);
  ASSERT_TRUE(check(recomputes).empty());
  EXPECT_EQ(problem_with(recomputes, 1), "recompute of layer 0, micro-batch 0 on rank 1 meets 1 of 2 ranks");
  again.keep[1] = Keep::all;
  again.keep[2] = Keep::input;  // without experts: nobody minds
  EXPECT_EQ(problem_with(of_stage(blocks, 2, again, 0), 1), "none");
  // One rank goes through its micro-batches in another order.
  Schedule swapped = step;
  for (Op& op : swapped.ops)
    if (op.micro != kNoMicro) op.micro = 1 - op.micro;
  const std::string said = problem_with(swapped, 2);
  EXPECT_NE(said.find("exchange 0 by forward"), std::string::npos) << said;
}

TEST(Ranks, WhatGoesTheSameWayHasItsTurn) {
  const auto blocks = make_blocks(4, false);
  const RandomLayout layout{.stages = 2};
  std::vector<Schedule> stages{of_stage(blocks, 2, layout, 0), of_stage(blocks, 2, layout, 1)};
  stages[0].ops[find(stages[0], ops::send_activation, 1, 1)].lane = Lane::write;  // free to overtake
  EXPECT_TRUE(check(stages[0]).empty());
  const auto problems = check_ranks(ranks_of(stages, layout));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().reason,
            "send activation of layer 0, micro-batch 0 on rank 0 and send activation of layer 0, micro-batch 1 on rank 0 use the same channel, "
            "but their order is not defined");
}

// Damage that leaves each rank's own schedule as the checker of one rank would have it, or not: either check finds it.
TEST(Ranks, LostExchangesAreFound) {
  Random random(5);
  int found = 0, tried = 0;
  while (tried < 300) {
    const auto blocks = make_blocks(pick(random, 4, 8), pick(random, 0, 1) == 1);
    const RandomLayout layout = random_layout(random, blocks);
    if (layout.ranks() == 1 || !layout.training) continue;
    std::vector<Schedule> stages;
    for (int32_t stage = 0; stage < layout.stages; stage++) stages.push_back(of_stage(blocks, 4, layout, stage));
    std::vector<RankSchedule> ranks = ranks_of(stages, layout);
    RankSchedule& rank = ranks[static_cast<size_t>(pick(random, 0, static_cast<int32_t>(ranks.size()) - 1))];
    Schedule damaged = *rank.schedule;
    rank.schedule = &damaged;
    std::vector<OpId> exchanges;
    for (OpId op = 0; op < static_cast<OpId>(damaged.ops.size()); op++)
      if (damaged.ops[op].lane == Lane::net || damaged.ops[op].lane == Lane::send)
        if (damaged.ops[op].kind != ops::gradient_norm) exchanges.push_back(op);
    if (exchanges.size() < 2) continue;
    tried++;
    // It does another exchange than the one that the others wait for.
    const OpId lost = exchanges[static_cast<size_t>(pick(random, 0, static_cast<int32_t>(exchanges.size()) - 1))];
    const std::string what = describe(damaged, lost);
    damaged.ops[lost].kind = ops::all_reduce_totals;
    damaged.ops[lost].block = kNoBlock;
    damaged.ops[lost].micro = kNoMicro;
    const bool caught = !check(damaged).empty() || !check_ranks(ranks).empty();
    EXPECT_TRUE(caught) << layout.name() << ": " << what;
    found += caught;
  }
  EXPECT_EQ(found, tried);
}

}  // namespace
}  // namespace megalith

// Schedules of several ranks. Each one passes the checker, and all of them together pass the rank checker.
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

// Checks each rank alone and all ranks together. Returns the first problem, or an empty text.
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
    const auto blocks = random_blocks(random, 3, 9);
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
  // ZeRO 3 over a pipeline with four micro-batches. Embedding and head are gathered once, layers twice, for any number of
  // micro-batches.
  const auto blocks = make_blocks(8, false);
  const RandomLayout layout{.stages = 2, .replicas = 2, .zero = 3, .window = 1};
  int gathers = 0, reduces = 0;
  for (int32_t stage = 0; stage < 2; stage++) {
    const Schedule step = of_stage(blocks, 4, layout, stage);
    gathers += count(step, ops::gather_parameters);
    reduces += count(step, ops::reduce_gradient);
    EXPECT_EQ(count(step, ops::zero_gradient), count(step, ops::reduce_gradient));
  }
  // The last layer of the first stage is still in memory when its backward begins. On the second stage, the head is in
  // between.
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

// A micro-batch is live in a layer from its forward to its weight gradient.
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
    if (stage == 0) EXPECT_EQ(most_waiting, 1);  // no stage waits for its gradient, so weight gradients are computed at once
    else EXPECT_GT(most_waiting, 1) << stage;
  }
}

// Returns the seconds of the step, and the seconds that its stages wait for each other.
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

// Four equal stages of two layers; a layer takes 2 ms forward and 4 ms backward. The bubbles are those of the textbook.
TEST(Ranks, BubblesAreThoseOfTheOrders) {
  auto blocks = make_blocks(10, false);
  for (BlockFacts* end : {&blocks.front(), &blocks.back()}) end->forward.flop = end->backward.flop = 0;
  constexpr int32_t kStages = 4, kMicros = 8;
  constexpr double kWork = kMicros * 12e-3, kOne = 12e-3;  // seconds on one stage: all, and per micro-batch
  const auto seconds = [&](PipelineOrder order, int32_t pieces) {
    return step_and_waits(blocks, kMicros, {.stages = kStages, .pieces = pieces, .order = order}).first;
  };
  const double bound = kWork + (kStages - 1) * kOne;  // plus one micro-batch through the other stages and back
  EXPECT_NEAR(seconds(PipelineOrder::gpipe, 1), bound, 0.02 * bound);
  EXPECT_NEAR(seconds(PipelineOrder::one_f_one_b, 1), bound, 0.02 * bound);
  EXPECT_LT(seconds(PipelineOrder::interleaved, 2), 0.97 * bound);
  // Forward, backward and weight gradients take 4 ms each. Weight gradients fill the bubble. At best one third of it
  // remains. With few micro-batches in flight, as here, somewhat more remains.
  const double left = seconds(PipelineOrder::zero_bubble, 1) - kWork;
  EXPECT_GE(left, (kStages - 1) * kOne / 3 - 1e-6);
  EXPECT_LT(left, 0.6 * (kStages - 1) * kOne);
}

TEST(Ranks, RandomLayoutsAreSimulatedToTheirEnd) {
  Random random(19);
  for (int i = 0; i < 200; i++) {
    const auto blocks = random_blocks(random, 3, 9);
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
    // A rank is not faster with others than alone.
    for (size_t r = 0; r < ranks.size(); r++)
      EXPECT_GE(all[r].seconds, simulate(*ranks[r].schedule, costs[r]).seconds - 1e-9) << layout.name();
  }
}

TEST(Ranks, StagesAreBalancedByCost) {
  auto blocks = make_blocks(10, false);
  blocks.back().forward.flop = 8e6;  // the head costs as much as four layers
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
  // Each of four ranks sends its quarter of 200 elements to three others, twice. Gradients of experts are not summed if no
  // two ranks have the same experts.
  const MachineSpeeds speeds{.flops = 1e9, .memory_bandwidth = 1e9, .links = on_every_axis({0, 1e9})};
  const auto seconds = [&](int32_t expert) {
    const Schedule one = of_stage(blocks, 1, {.replicas = 4, .expert = expert}, 0);
    return predict_costs(one, speeds)[static_cast<size_t>(find(one, ops::reduce_gradient, 1, kNoMicro))].seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(4), 2 * 3 * 200 / 1e9);
  EXPECT_DOUBLE_EQ(seconds(2), (2 * 3 * 200 + 2 * 2 * 800) / 1e9);
}

// Ranks exchange rows while a layer with experts runs. So the ranks that share its experts must run it at the same time.
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
  again.keep[2] = Keep::input;  // it has no experts, so this is allowed
  EXPECT_EQ(problem_with(of_stage(blocks, 2, again, 0), 1), "none");
  // One rank goes through its micro-batches in another order.
  Schedule swapped = step;
  for (Op& op : swapped.ops)
    if (op.micro != kNoMicro) op.micro = 1 - op.micro;
  const std::string said = problem_with(swapped, 2);
  EXPECT_NE(said.find("exchange 0 of kind forward"), std::string::npos) << said;
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

// Damages the exchanges of one rank. Either the checker of one rank or the rank checker must find the damage.
TEST(Ranks, LostExchangesAreFound) {
  Random random(5);
  int found = 0, tried = 0;
  while (tried < 300) {
    const auto blocks = random_blocks(random, 4, 8);
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
    // The rank now does another exchange than the one that the others wait for.
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

// Schedules of several ranks: each alone passes the checker, and all of them meet.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "schedule/checker.h"
#include "schedule/random_layouts.h"
#include "schedule/together.h"

namespace megalith {
namespace {

// Every rank's own check, and all together; the first problem or nothing.
std::string problem(const std::vector<BlockFacts>& blocks, int32_t micros, const RankLayout& layout) {
  std::vector<Schedule> stages;
  for (int32_t stage = 0; stage < layout.stages; stage++) {
    stages.push_back(of_stage(blocks, micros, layout, stage));
    const auto problems = check(stages.back());
    if (!problems.empty()) return fmt::format("stage {}: {}", stage, problems.front().reason);
  }
  const auto problems = check_together(ranks_of(stages, layout));
  return problems.empty() ? "" : problems.front().reason;
}

TEST(Ranks, RandomLayoutsPassAndMeet) {
  Random random(71);
  std::set<std::string> seen;
  for (int i = 0; i < 600; i++) {
    const auto blocks = make_blocks(pick(random, 3, 9), pick(random, 0, 1) == 1);
    const int32_t micros = pick(random, 1, 9);
    const RankLayout layout = random_layout(random, blocks);
    ASSERT_EQ(problem(blocks, micros, layout), "") << i << ": " << blocks.size() << " blocks, " << micros
                                                   << " micro-batches, " << layout.name();
    seen.insert(layout.name());
  }
  EXPECT_GT(seen.size(), 200u);
}

int count(const Schedule& schedule, OpKind kind) {
  return static_cast<int>(std::count_if(schedule.ops.begin(), schedule.ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

TEST(Ranks, AStageThatDoesNotStayGathersEachBlockOnceADirection) {
  // ZeRO 3 over a pipeline, four micro-batches: embedding and head once, layers twice, whatever the number.
  const auto blocks = make_blocks(8, false);
  const RankLayout layout{.stages = 2, .replicas = 2, .zero = 3, .window = 1};
  int gathers = 0, reduces = 0;
  for (int32_t stage = 0; stage < 2; stage++) {
    const Schedule step = of_stage(blocks, 4, layout, stage);
    gathers += count(step, OpKind::gather);
    reduces += count(step, OpKind::reduce);
    EXPECT_EQ(count(step, OpKind::clear), count(step, OpKind::reduce));
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
    const BlockId block = static_cast<BlockId>(std::find(step.division.stages.of.begin(), step.division.stages.of.end(), stage) -
                                               step.division.stages.of.begin());
    for (const Op& op : step.ops) {
      if (op.block != block) continue;
      if (op.kind == OpKind::forward) most = std::max(most, ++now);
      if (op.kind == OpKind::backward) now--;
    }
    EXPECT_EQ(most, 4 - stage) << stage;
  }
}

TEST(Ranks, StagesAreBalancedByCost) {
  auto blocks = make_blocks(10, false);
  blocks.back().forward_flop = 8e6;  // a head as dear as four layers
  blocks.back().backward_flop = 16e6;
  blocks.front().forward_flop = blocks.front().backward_flop = 0;
  const auto stages = balanced_stages(blocks, 3);
  std::map<int32_t, double> cost;
  for (size_t b = 0; b < blocks.size(); b++) cost[stages[b]] += blocks[b].forward_flop + blocks[b].backward_flop;
  EXPECT_LE(std::max({cost[0], cost[1], cost[2]}), 24e6 + 1);
}

TEST(Ranks, WhatGoesTheSameWayHasItsTurn) {
  const auto blocks = make_blocks(4, false);
  const RankLayout layout{.stages = 2};
  std::vector<Schedule> stages{of_stage(blocks, 2, layout, 0), of_stage(blocks, 2, layout, 1)};
  stages[0].ops[find(stages[0], OpKind::send, 1, 1)].lane = Lane::write;  // free to overtake
  EXPECT_TRUE(check(stages[0]).empty());
  const auto problems = check_together(ranks_of(stages, layout));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().reason,
            "send of layer 0, micro-batch 0 on rank 0 and send of layer 0, micro-batch 1 on rank 0 go the same way, and "
            "nothing says which goes first");
}

// Damage that leaves each rank's own schedule as the checker of one rank would have it, or not: either check finds it.
TEST(Ranks, LostExchangesAreFound) {
  Random random(5);
  int found = 0, tried = 0;
  while (tried < 300) {
    const auto blocks = make_blocks(pick(random, 4, 8), pick(random, 0, 1) == 1);
    const RankLayout layout = random_layout(random, blocks);
    if (layout.stages * layout.replicas == 1 || !layout.training) continue;
    std::vector<Schedule> stages;
    for (int32_t stage = 0; stage < layout.stages; stage++) stages.push_back(of_stage(blocks, 4, layout, stage));
    std::vector<RankSchedule> ranks = ranks_of(stages, layout);
    RankSchedule& rank = ranks[static_cast<size_t>(pick(random, 0, static_cast<int32_t>(ranks.size()) - 1))];
    Schedule damaged = *rank.schedule;
    rank.schedule = &damaged;
    std::vector<OpId> exchanges;
    for (OpId op = 0; op < static_cast<OpId>(damaged.ops.size()); op++)
      if (damaged.ops[op].lane == Lane::net || damaged.ops[op].lane == Lane::send)
        if (damaged.ops[op].kind != OpKind::norm) exchanges.push_back(op);
    if (exchanges.size() < 2) continue;
    tried++;
    // It does another exchange than the one that the others wait for.
    const OpId lost = exchanges[static_cast<size_t>(pick(random, 0, static_cast<int32_t>(exchanges.size()) - 1))];
    const std::string what = describe(damaged, lost);
    damaged.ops[lost].kind = OpKind::total;
    damaged.ops[lost].block = kNoBlock;
    damaged.ops[lost].micro = kNoMicro;
    const bool caught = !check(damaged).empty() || !check_together(ranks).empty();
    EXPECT_TRUE(caught) << layout.name() << ": " << what;
    found += caught;
  }
  EXPECT_EQ(found, tried);
}

}  // namespace
}  // namespace megalith

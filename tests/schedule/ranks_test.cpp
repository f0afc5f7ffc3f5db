// Schedules of several ranks: each alone passes the checker, and all of them meet.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "schedule/checker.h"
#include "schedule/pipeline_pass.h"
#include "schedule/random_schedules.h"
#include "schedule/residency_pass.h"
#include "schedule/save_pass.h"
#include "schedule/together.h"

namespace megalith {
namespace {

struct Layout {
  int32_t stages = 1, pieces = 1, replicas = 1, zero = 0;
  PipelineOrder order = PipelineOrder::one_f_one_b;
  int32_t window = 1;
  std::vector<Placement> placement;
  std::vector<Keep> keep;
  bool training = true, saves = false;
  std::string name() const {
    return fmt::format("stages {} x {}, replicas {}, zero {}, order {}, {}", stages, pieces, replicas, zero,
                       static_cast<int>(order), placement.empty() ? "in memory" : "spilled");
  }
};

Schedule of_stage(const std::vector<BlockFacts>& blocks, int32_t micros, const Layout& layout, int32_t stage) {
  Division division{.ranks = layout.stages * layout.replicas, .sharding = {layout.replicas, layout.zero}, .stages = {}};
  if (layout.stages > 1) division.stages = {balanced_stages(blocks, layout.stages, layout.pieces), stage};
  const bool comes_and_goes = !layout.placement.empty() || layout.zero == 3;
  Schedule step;
  if (!layout.training)
    step = evaluation_step(blocks, micros, comes_and_goes ? ComputeOrder::by_block : ComputeOrder::by_micro, division);
  else if (layout.stages > 1)
    step = pipeline_step(blocks, micros, comes_and_goes ? PipelineOrder::breadth_first : layout.order, layout.keep, division);
  else
    step = training_step(blocks, micros, comes_and_goes ? ComputeOrder::by_block : ComputeOrder::by_micro, layout.keep, division);
  step = with_residency(std::move(step), layout.placement, layout.window);
  return layout.saves ? with_save(std::move(step)) : step;
}

// Every rank's own check, and all together; the first problem or nothing.
std::string problem(const std::vector<BlockFacts>& blocks, int32_t micros, const Layout& layout) {
  std::vector<Schedule> stages;
  for (int32_t stage = 0; stage < layout.stages; stage++) {
    stages.push_back(of_stage(blocks, micros, layout, stage));
    const auto problems = check(stages.back());
    if (!problems.empty()) return fmt::format("stage {}: {}", stage, problems.front().reason);
  }
  std::vector<RankSchedule> ranks;
  for (int32_t replica = 0; replica < layout.replicas; replica++)
    for (const Schedule& stage : stages) ranks.push_back({&stage, replica});
  const auto problems = check_together(ranks);
  return problems.empty() ? "" : problems.front().reason;
}

Layout random_layout(Random& random, const std::vector<BlockFacts>& blocks) {
  const auto count = static_cast<int32_t>(blocks.size());
  Layout layout;
  layout.stages = pick(random, 1, std::min(4, count));
  layout.pieces = layout.stages > 1 ? pick(random, 1, std::min(3, count / layout.stages)) : 1;
  layout.order = static_cast<PipelineOrder>(pick(random, 0, 3));
  if (layout.order != PipelineOrder::interleaved) layout.pieces = 1;
  layout.replicas = pick(random, 1, 3);
  layout.zero = pick(random, 0, 3);
  layout.window = pick(random, 1, 3);
  if (pick(random, 0, 2) == 0) layout.placement = random_placement(random, blocks.size());
  if (pick(random, 0, 1) == 0) {
    layout.keep = random_keep(random, blocks);
    if (layout.stages > 1) {  // a chain stays on its stage
      const auto stages = balanced_stages(blocks, layout.stages, layout.pieces);
      for (size_t b = 1; b < layout.keep.size(); b++)
        if (layout.keep[b] == Keep::none && stages[b] != stages[b - 1]) layout.keep[b] = Keep::input;
    }
  }
  layout.training = pick(random, 0, 5) > 0;
  layout.saves = layout.training && pick(random, 0, 2) == 0;
  return layout;
}

TEST(Ranks, RandomLayoutsPassAndMeet) {
  Random random(71);
  std::set<std::string> seen;
  for (int i = 0; i < 600; i++) {
    const auto blocks = make_blocks(pick(random, 3, 9), pick(random, 0, 1) == 1);
    const int32_t micros = pick(random, 1, 9);
    const Layout layout = random_layout(random, blocks);
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
  const Layout layout{.stages = 2, .replicas = 2, .zero = 3, .window = 1};
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

// Damage that leaves each rank's own schedule as the checker of one rank would have it, or not: either check finds it.
TEST(Ranks, LostExchangesAreFound) {
  Random random(5);
  int found = 0, tried = 0;
  while (tried < 300) {
    const auto blocks = make_blocks(pick(random, 4, 8), pick(random, 0, 1) == 1);
    Layout layout = random_layout(random, blocks);
    if (layout.stages * layout.replicas == 1 || !layout.training) continue;
    std::vector<Schedule> stages;
    for (int32_t stage = 0; stage < layout.stages; stage++) stages.push_back(of_stage(blocks, 4, layout, stage));
    std::vector<Schedule> ranks_of;
    std::vector<RankSchedule> ranks;
    for (int32_t replica = 0; replica < layout.replicas; replica++)
      for (const Schedule& stage : stages) ranks_of.push_back(stage);
    Schedule& damaged = ranks_of[static_cast<size_t>(pick(random, 0, static_cast<int32_t>(ranks_of.size()) - 1))];
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
    bool caught = !check(damaged).empty();
    for (size_t r = 0; r < ranks_of.size(); r++)
      ranks.push_back({&ranks_of[r], static_cast<int32_t>(r) / layout.stages});
    caught |= !check_together(ranks).empty();
    EXPECT_TRUE(caught) << layout.name() << ": " << what;
    found += caught;
  }
  EXPECT_EQ(found, tried);
}

}  // namespace
}  // namespace megalith

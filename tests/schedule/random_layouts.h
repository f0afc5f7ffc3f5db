// Random ways to divide a model over ranks, for property tests.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "schedule/passes/pipeline.h"
#include "schedule/random_schedules.h"
#include "schedule/passes/residency.h"
#include "schedule/passes/save.h"
#include "schedule/check/rank_checker.h"
#include "schedule/ops/all.h"

namespace megalith {

struct RandomLayout {
  int32_t stages = 1, pieces = 1, replicas = 1, zero = 0, tensor = 1, expert = 1;
  PipelineOrder order = PipelineOrder::one_f_one_b;
  bool by_block = false;  // a block takes all micro-batches before the next block; `order` is ignored
  int32_t window = 1;
  std::vector<Placement> placement;
  std::vector<Keep> keep;
  bool training = true, saves = false;
  int32_t ranks() const { return stages * replicas * tensor; }
  std::string name() const {
    return fmt::format("stages {} x {}, replicas {}, tensor {}, expert {}, zero {}, order {}, {}", stages, pieces, replicas,
                       tensor, expert, zero, by_block ? "by block" : name_of(order), placement.empty() ? "in memory" : "spilled");
  }
};

inline Schedule of_stage(std::vector<BlockFacts> blocks, int32_t micros, const RandomLayout& random, int32_t stage) {
  for (size_t b = 1; b + 1 < blocks.size() && random.expert > 1; b++)
    if (b % 2 == 1) blocks[b].forward.exchanges[Axis::expert].calls = 1;  // every other layer has experts
  RankLayout layout{Mesh::of_stage({.data = random.replicas,
                                    .pipeline = random.stages,
                                    .tensor = random.tensor,
                                    .expert = random.expert,
                                    .zero = random.zero},
                                   stage),
                    {}};
  if (random.stages > 1) layout.stages = {balanced_stages(blocks, random.stages, random.pieces)};
  const bool comes_and_goes = !random.placement.empty() || random.zero == 3;
  const bool by_block = comes_and_goes || random.by_block;
  Schedule step;
  if (!random.training)
    step = evaluation_step(blocks, micros, comes_and_goes ? ComputeOrder::by_block : ComputeOrder::by_micro, layout);
  else if (random.stages > 1 && !by_block)
    step = pipeline_step(blocks, micros, random.order, random.keep, layout);
  else
    step = training_step(blocks, micros, by_block ? ComputeOrder::by_block : ComputeOrder::by_micro, random.keep,
                         layout);
  step = with_residency(std::move(step), random.placement, random.window);
  return random.saves ? with_save(std::move(step)) : step;
}

inline RandomLayout random_layout(Random& random, const std::vector<BlockFacts>& blocks) {
  const auto count = static_cast<int32_t>(blocks.size());
  RandomLayout layout;
  layout.stages = pick(random, 1, std::min(4, count));
  layout.pieces = layout.stages > 1 ? pick(random, 1, std::min(3, count / layout.stages)) : 1;
  const int32_t order = pick(random, 0, 4);
  layout.by_block = order == 4 && layout.stages > 1;
  if (order < 4) layout.order = static_cast<PipelineOrder>(order);
  if (layout.order != PipelineOrder::interleaved) layout.pieces = 1;
  layout.replicas = pick(random, 1, 3);
  layout.zero = pick(random, 0, 3);
  layout.tensor = pick(random, 0, 2) == 0 ? 2 : 1;
  if (pick(random, 0, 2) == 0) {
    layout.replicas = pick(random, 1, 2) * 2;
    layout.expert = 2;
  }
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

// Moves ops to random lanes, so that only dependencies keep them in order. Ops that meet other ranks stay on their lanes.
inline void spread_work(Schedule& schedule, Random& random) {
  for (Op& op : schedule.ops) {
    const bool experts = (op.kind == ops::forward || op.kind == ops::recompute || op.kind == ops::backward) &&
                         schedule.blocks[op.block].forward.exchanges[Axis::expert].calls > 0;
    const bool meets = op.lane == Lane::net || op.lane == Lane::send || op.kind == ops::all_reduce_totals ||
                       op.kind == ops::commit || experts;
    if (!meets) op.lane = static_cast<Lane>(pick(random, 0, kLanes - 1));
  }
}

// Returns the schedules of all ranks: all stages for every tensor rank of every replica. Borrows `stages`.
inline std::vector<RankSchedule> ranks_of(const std::vector<Schedule>& stages, const RandomLayout& layout) {
  std::vector<RankSchedule> ranks;
  for (int32_t column = 0; column < layout.replicas * layout.tensor; column++)
    for (const Schedule& stage : stages)
      ranks.push_back({&stage, column, column % layout.tensor, column / layout.tensor / layout.expert});
  return ranks;
}

}  // namespace megalith

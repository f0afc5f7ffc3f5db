// Decides from shapes alone whether a run fits. Memory depends only on the order of ops, so no speeds are needed.
#pragma once
#include <optional>
#include <vector>

#include "planner/plan_input.h"
#include "planner/strategy.h"
#include "schedule/predict/memory.h"

namespace megalith {

// Returns the limits for the strategy of the ranks of a stage, with `room` bytes for tensors.
StrategyLimits limits_of(const PlanInput& input, const std::vector<BlockFacts>& blocks, int32_t stage, int64_t room);

// Returns the bytes of tensors with the tightest strategy, on the stage that needs most.
int64_t least_memory(const PlanInput& input, int64_t micro_batch, Tier tier = Tier::host);
bool fits_tightly(const PlanInput& input, int64_t micro_batch, int64_t room);

// Throws UserError if a step would have more micro-batches than can be planned.
void check_micro_batches(const PlanInput& input);
// Returns the smallest micro-batch that the settings allow and that can be planned, or nothing if no micro-batch can.
std::optional<int64_t> smallest_micro_batch(const PlanInput& input);
// Returns the micro-batch in sequences: the largest one that needs neither recomputation nor the disk. If it has so few
// tokens that products are slow, returns the largest one that fits with full recomputation and everything on disk.
int64_t choose_micro_batch(const PlanInput& input, int64_t room);

}  // namespace megalith

// Whether a run fits, by shapes alone: memory follows from the order of ops, no speeds are needed.
#pragma once
#include <optional>
#include <vector>

#include "planner/plan_input.h"
#include "planner/strategy.h"
#include "schedule/predict/memory.h"

namespace megalith {

// What the ranks of a stage may choose from, with `room` bytes for tensors.
StrategyLimits limits_of(const PlanInput& input, const std::vector<BlockFacts>& blocks, int32_t stage, int64_t room);

// Bytes of tensors by the strategy that needs least, of the stage that needs most.
int64_t least_memory(const PlanInput& input, int64_t micro_batch, Tier tier = Tier::host);
bool fits_tightly(const PlanInput& input, int64_t micro_batch, int64_t room);

// UserError where a step would have more micro-batches than can be planned.
void check_micro_batches(const PlanInput& input);
// The smallest that the settings allow and that can be planned; empty: there is none.
std::optional<int64_t> smallest_micro_batch(const PlanInput& input);
// Sequences: the largest that needs neither recomputation nor the disk, unless it has so few tokens that products get
// slow; then the largest that fits with all of both.
int64_t choose_micro_batch(const PlanInput& input, int64_t room);

}  // namespace megalith

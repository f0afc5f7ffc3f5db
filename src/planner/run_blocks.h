// The blocks of a run as its schedules see them: what a rank's part of each block computes, keeps and moves.
#pragma once
#include <vector>

#include "engine/stored_array.h"
#include "planner/calibration.h"
#include "planner/plan_input.h"
#include "schedule/schedule.h"

namespace megalith {

// Tokens that dropping layers process per sequence of a full batch: all rows of a step, divided by the sequences of a full
// batch. A step with many short sequences may drop nothing, while later steps with long sequences drop many tokens.
struct LargestKept {
  int64_t most = 0;      // the maximum of all steps: the plan must fit it; 0: all tokens
  int64_t dropping = 0;  // the maximum of the steps that drop tokens; 0: no step does
};
LargestKept largest_kept(const PlanInput& input);
Workload workload(const PlanInput& input, int64_t micro_batch);  // what calibration measures
std::vector<BlockFacts> facts_for(const PlanInput& input, int64_t micro_batch, Staging staging = Staging::scarce);

}  // namespace megalith

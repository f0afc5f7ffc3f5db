// The blocks of a run as its schedules see them: what a rank's share of each computes, keeps and moves.
#pragma once
#include <vector>

#include "engine/stored_array.h"
#include "planner/calibration.h"
#include "planner/plan_input.h"
#include "schedule/schedule.h"

namespace megalith {

// Tokens of a full sequence that the layers which may drop process, by what all sequences of a step have together: many
// short ones may drop nothing where the long ones of the end drop much.
struct LargestKept {
  int64_t most = 0;      // in any step, what a plan is for; 0: all
  int64_t dropping = 0;  // in steps that drop; 0: none does
};
LargestKept largest_kept(const PlanInput& input);
Workload workload(const PlanInput& input, int64_t micro_batch);  // what calibration measures
std::vector<BlockFacts> facts_for(const PlanInput& input, int64_t micro_batch, Staging staging = Staging::scarce);

}  // namespace megalith

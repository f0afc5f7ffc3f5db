// The blocks of a run as its schedules see them: what a rank's share of each computes, keeps and moves.
#pragma once
#include <vector>

#include "config/config.h"
#include "engine/stored_array.h"
#include "planner/calibration.h"
#include "schedule/schedule.h"

namespace megalith {

// Tokens of a full sequence that the layers which may drop process, by what all sequences of a step have together: many
// short ones may drop nothing where the long ones of the end drop much.
struct LargestKept {
  int64_t most = 0;      // in any step, what a plan is for; 0: all
  int64_t dropping = 0;  // in steps that drop; 0: none does
};
LargestKept largest_kept(const Config& config);
int64_t rank_batch(const Config& config);  // sequences a step that a rank takes
int32_t micros_of(const Config& config, int64_t micro_batch);  // micro-batches a step
Workload workload(const Config& config, int64_t micro_batch);  // what calibration measures
std::vector<BlockFacts> facts_for(const Config& config, int64_t micro_batch, Staging staging = Staging::scarce);

}  // namespace megalith

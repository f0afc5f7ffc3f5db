// Writes the compute order of one stage of a pipeline.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// Returns the stage of each block. Minimizes the work of the most expensive run of consecutive blocks, including the
// embedding and the head. A stage has `pieces` runs of blocks. The runs are assigned to the stages round robin.
std::vector<int32_t> balanced_stages(const std::vector<BlockFacts>& blocks, int32_t stages, int32_t pieces = 1);

// Returns one optimizer step of this rank's stage, which `layout` names. Works for any number of micro-batches. All stages
// must be written from the same blocks, because the order comes from one simulation of all stages with the blocks' costs.
Schedule pipeline_step(std::vector<BlockFacts> blocks, int32_t micros, PipelineOrder order, std::vector<Keep> keep,
                       RankLayout layout);

}  // namespace megalith

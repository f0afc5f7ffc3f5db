// Writes the compute order of one stage of a pipeline.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// Which stage each block is on. Layers are dealt out so that the dearest stage is as cheap as can be, the embedding's and
// the head's work counted; with `pieces` > 1 a stage has that many runs of blocks, dealt round robin.
std::vector<int32_t> balanced_stages(const std::vector<BlockFacts>& blocks, int32_t stages, int32_t pieces = 1);

// One optimizer step of the stage that `layout` says this rank is. Any number of micro-batches. All stages must be
// written from the same blocks: interleaved orders come from one simulation of all stages by the blocks' costs.
Schedule pipeline_step(std::vector<BlockFacts> blocks, int32_t micros, PipelineOrder order, std::vector<Keep> keep,
                       RankLayout layout);

}  // namespace megalith

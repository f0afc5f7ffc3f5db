// Writes the compute order of one stage of a pipeline.
#pragma once
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

enum class PipelineOrder : uint8_t {
  gpipe,        // all micro-batches forward, then all back
  one_f_one_b,  // as soon as a micro-batch can go back it does: a stage keeps as many as there are stages behind it
  interleaved,  // the same with several pieces of the model a stage: less waiting at both ends, more exchange
  zero_bubble,  // as 1F1B, with backward in two: gradients of activations at once, those of weights when a stage would wait
  breadth_first,  // a block takes all micro-batches before the next: for blocks that are brought in for each use
};

// Which stage each block is on. Layers are dealt out so that the dearest stage is as cheap as can be, the embedding's and
// the head's work counted; with `pieces` > 1 a stage has that many runs of blocks, dealt round robin.
std::vector<int32_t> balanced_stages(const std::vector<BlockFacts>& blocks, int32_t stages, int32_t pieces = 1);

// One optimizer step of the stage that `division` says this rank is. Any number of micro-batches. All stages must be
// written from the same blocks: interleaved orders come from one simulation of all stages by the blocks' costs.
Schedule pipeline_step(std::vector<BlockFacts> blocks, int32_t micros, PipelineOrder order, std::vector<Keep> keep,
                       Division division);

}  // namespace megalith

// What a block costs a micro-batch, in operations and bytes, from its shape alone: the planner's raw material. Each family
// puts its blocks together (families/*/facts.cpp) from the facts beside the layers (model/layers/*_facts.h).
#pragma once
#include <vector>

#include "families/block_spec.h"
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

// One entry a block, of one rank of a mesh. `micro` is whole sequences. optimizer_bytes is left 0: it is the
// optimizer's to say. `packing`: how activations are kept for backward; other than as they are in float32 only.
std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    Packing packing = Packing::fp32, const Mesh& mesh = {});

}  // namespace megalith

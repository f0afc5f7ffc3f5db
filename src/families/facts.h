// Computes what a block costs for a micro-batch, in operations and bytes, from the shape alone. The planner uses these
// facts. Each family builds the facts of its blocks (families/*/facts.cpp) from those of the layers
// (model/layers/*_facts.h).
#pragma once
#include <vector>

#include "families/block_spec.h"
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

// Returns one entry per block, for one rank of a mesh. `micro` counts whole sequences. optimizer_bytes stays 0; the
// optimizer knows it. `packing` is the format of activations between forward and backward. Only float32 activations can
// be packed.
std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    Packing packing = Packing::fp32, const Mesh& mesh = {});

}  // namespace megalith

// What a block costs a micro-batch, in operations and bytes, from its shape alone: the planner's raw material.
#pragma once
#include <vector>

#include "config/config.h"
#include "families/block_spec.h"

namespace megalith {

struct MicroBatchShape {
  int64_t sequences = 1;
  int64_t length = 1;
  double target_fraction = 1;  // of the positions: masked objectives send only those through the head
  int64_t micros = 1;          // micro-batches a step: together they keep no more rows aside than the table has
  int64_t kept = 0;            // tokens of a sequence in the layers that drop some; 0: none does
  std::vector<int64_t> dropping_layers;
  int64_t tokens() const { return sequences * length; }
};

// One entry a block, of one rank of a split. `micro` is whole sequences. optimizer_bytes is left 0: it is the
// optimizer's to say. `packing`: how activations are kept for backward; other than as they are in float32 only.
std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    Packing packing = Packing::fp32, const Split& split = {});

}  // namespace megalith

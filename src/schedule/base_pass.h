// Writes the compute order of one rank that holds the whole model in memory.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// One optimizer step over `micros` >= 1 micro-batches, depth first: a micro-batch goes forward through all
// blocks, then back, before the next one starts, so that only one micro-batch's activations are alive. At
// least two blocks: the first is the embedding, the last the head, whose forward and backward are one op
// (`loss`).
Schedule training_step(std::vector<BlockFacts> blocks, int32_t micros);

// Forward passes only; `forward` of the head gives the loss.
Schedule evaluation_step(std::vector<BlockFacts> blocks, int32_t micros);

}  // namespace megalith

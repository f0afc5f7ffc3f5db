// Writes the compute order of a rank that holds all blocks, or its part of them where it takes all micro-batches block by
// block; and of validation.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

enum class ComputeOrder : uint8_t {
  by_micro,  // a micro-batch goes through all blocks and back before the next: one's activations are alive
  by_block,  // a block takes all micro-batches before the next block: its parameters are needed once a direction
};

// One optimizer step over `micros` >= 1 micro-batches. At least two blocks: the first is the embedding, the last
// the head, whose forward and backward are one op (`loss`). `keep`: by block, what it keeps for backward; empty:
// all. Whatever the order, gradients add up in the order of the micro-batches: the numbers are the same.
Schedule training_step(std::vector<BlockFacts> blocks, int32_t micros, ComputeOrder order = ComputeOrder::by_micro,
                       std::vector<Keep> keep = {}, RankLayout layout = {});

// Forward passes only; `forward` of the head gives the loss.
Schedule evaluation_step(std::vector<BlockFacts> blocks, int32_t micros,
                         ComputeOrder order = ComputeOrder::by_micro, RankLayout layout = {});

}  // namespace megalith

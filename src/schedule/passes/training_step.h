// Writes the compute order of a rank that holds all blocks. With by_block, the rank may hold only some of them. Also writes
// the step of a validation.
#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

enum class ComputeOrder : uint8_t {
  by_micro,  // a micro-batch goes through all blocks and back before the next: activations of one micro-batch are alive
  by_block,  // a block takes all micro-batches before the next block: its parameters are needed once per direction
};

// Returns one optimizer step over `micros` >= 1 micro-batches. There are at least two blocks: the first is the embedding,
// the last the head. Forward and backward of the head are one op (`loss`). If the head scores the whole batch, all
// micro-batches first go forward without keeping anything, and `batch_loss` follows. `keep` says what each block keeps for
// backward. If it is empty, all blocks keep all. In every order, gradients add up in the order of the micro-batches, so the
// numbers are the same.
Schedule training_step(std::vector<BlockFacts> blocks, int32_t micros, ComputeOrder order = ComputeOrder::by_micro,
                       std::vector<Keep> keep = {}, RankLayout layout = {});

// Returns a step with forward passes only. The head's `forward` computes the loss.
Schedule evaluation_step(std::vector<BlockFacts> blocks, int32_t micros,
                         ComputeOrder order = ComputeOrder::by_micro, RankLayout layout = {});

}  // namespace megalith

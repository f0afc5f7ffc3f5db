// Chooses which layers keep the tensors that backward needs, and which layers recompute them.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/passes/training_step.h"
#include "schedule/schedule.h"

namespace megalith {

// Every layer keeps its attention half and recomputes its feed-forward half.
std::vector<Keep> recompute_feed_forward(const std::vector<BlockFacts>& blocks);
// Every layer keeps its input only.
std::vector<Keep> recompute_all(const std::vector<BlockFacts>& blocks);
// Every k-th layer keeps its input; the layers between keep nothing. Fewer inputs are kept, but backward needs the tensors
// of k layers at the same time. k = 1 is recompute_all.
std::vector<Keep> recompute_every(const std::vector<BlockFacts>& blocks, int64_t k);

// Finds the least recomputation whose kept tensors always stay within `bytes`. Each layer keeps all or its attention half,
// or it is in a chain of layers whose first layer keeps its input. The choice is optimal for any costs of the layers. It
// uses dynamic programming over layers and memory (in units of 1/512 of the memory, rounded up). With more than 128 layers,
// groups of neighbours get the same choice. Returns an empty vector if nothing fits.
std::vector<Keep> choose_keep(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order, int64_t bytes);

// The costs of a choice: most bytes kept at one moment, and recomputed floating-point operations.
struct KeepCost {
  int64_t bytes = 0;
  double flop = 0;
};
KeepCost keep_cost(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order, const std::vector<Keep>& keep);

}  // namespace megalith

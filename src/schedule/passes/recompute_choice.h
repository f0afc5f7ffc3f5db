// Which layers keep what backward needs, and which make it again.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/passes/training_step.h"
#include "schedule/schedule.h"

namespace megalith {

// Every layer keeps its attention half and makes its feed-forward half again.
std::vector<Keep> recompute_feed_forward(const std::vector<BlockFacts>& blocks);
// Every layer keeps its input only.
std::vector<Keep> recompute_all(const std::vector<BlockFacts>& blocks);
// Every k-th layer keeps its input, those between nothing: fewer inputs kept, k layers' tensors there at once in
// backward. k = 1: recompute_all.
std::vector<Keep> recompute_every(const std::vector<BlockFacts>& blocks, int64_t k);

// The least recomputation whose kept tensors stay within `bytes`, at every moment: each layer keeps all or its
// attention half, or stands in a chain of layers of which the first keeps its input. Optimal for any costs of the
// layers, by dynamic programming over them and the memory (in 1/512 of `bytes`, rounded up). Of more than 128 layers,
// neighbours are treated alike. Empty vector: nothing fits.
std::vector<Keep> choose_keep(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order, int64_t bytes);

// What the choice is judged by: bytes kept at the worst moment, and floating-point operations made again.
struct KeepCost {
  int64_t bytes = 0;
  double flop = 0;
};
KeepCost keep_cost(const std::vector<BlockFacts>& blocks, int32_t micros, ComputeOrder order, const std::vector<Keep>& keep);

}  // namespace megalith

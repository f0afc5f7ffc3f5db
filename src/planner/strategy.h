// How a step fits the memory budget: what is recomputed, and what is on disk.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/tier.h"
#include "config/config.h"
#include "schedule/passes/training_step.h"
#include "schedule/passes/pipeline.h"
#include "schedule/schedule.h"

namespace megalith {

inline constexpr int32_t kLargestWindow = 4;  // larger ones are not worth trying: the disk is the limit

struct Strategy {
  ComputeOrder order = ComputeOrder::by_micro;
  std::vector<Keep> keep;             // by block; empty: all keep all
  std::vector<Placement> placement;   // by block; empty: all in memory
  std::vector<bool> offloads;            // by block: offload the input that it keeps; empty: no block does
  int32_t window = 1;                 // how many uses early a block is loaded to where it is computed
  int32_t ahead = 0;                  // with a device: how many uses before that a block is loaded from disk
  RankLayout layout;                  // not chosen here; with by_block, a pipeline is always breadth first

  bool spills() const { return !placement.empty() || !offloads.empty(); }
  bool moves() const { return spills() || layout.device; }  // the window decides when something is loaded
  bool recomputes() const { return !keep.empty(); }
};

Schedule training_schedule(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy);
Schedule evaluation_schedule(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy);
// The save after the last step.
Schedule final_save_schedule(const std::vector<BlockFacts>& blocks, const Strategy& strategy);

// Returns the maximum of the bytes in memory: in a step with a save, in a validation, and in the last save.
int64_t most_memory(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy, Tier tier = Tier::host);

// The limits of the choice: settings that are fixed, and the memory.
struct StrategyLimits {
  MemorySettings memory;
  int64_t room = 0;  // bytes for tensors
  RankLayout layout = {};
  bool by_block = false;  // only this order, because another stage of the pipeline uses it
  int64_t device = 0;     // bytes for tensors in device memory, if a device computes

  // The strategy before anything is chosen. Parameters that are gathered for each use are gathered for all micro-batches at
  // once.
  Strategy plain() const {
    const bool passing = by_block || layout.device || (layout.sizes().slices() && layout.sizes().zero >= 3);
    return {.order = passing ? ComputeOrder::by_block : ComputeOrder::by_micro, .layout = layout};
  }
};

// Returns all strategies worth trying that fit. None of them is better than another in all respects. Strategies in memory
// come before those on disk, and less recomputation before more. Empty if nothing fits.
std::vector<Strategy> fitting_strategies(const std::vector<BlockFacts>& blocks, int32_t micros,
                                         const StrategyLimits& limits);

// Returns the strategy that needs the least memory.
Strategy tightest_strategy(const std::vector<BlockFacts>& blocks, int32_t micros, const StrategyLimits& limits);

// Returns the windows worth trying, in rising order.
std::vector<int32_t> windows_to_try(const MemorySettings& memory, bool device, size_t blocks);

// "full recompute, 22 of 26 blocks on disk, window 2"; empty if everything is in memory and nothing is recomputed.
std::string describe(const Strategy& strategy);

}  // namespace megalith

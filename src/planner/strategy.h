// How a step is brought within the memory budget: what is computed again, and what lives on disk.
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

inline constexpr int32_t kLargestWindow = 4;  // worth trying: beyond it the disk is the limit

struct Strategy {
  ComputeOrder order = ComputeOrder::by_micro;
  std::vector<Keep> keep;             // by block; empty: all keep all
  std::vector<Placement> placement;   // by block; empty: all in memory
  std::vector<bool> offloads;            // by block: the input that it keeps waits on disk; empty: none does
  int32_t window = 1;                 // turns that blocks come early to where they are computed
  int32_t ahead = 0;                  // with a device: turns that they come from disk before that
  RankLayout layout;                  // given; with by_block a pipeline is breadth first, whatever its order

  bool spills() const { return !placement.empty() || !offloads.empty(); }
  bool moves() const { return spills() || layout.device; }  // something comes and goes by the window
  bool recomputes() const { return !keep.empty(); }
};

Schedule training_schedule(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy);
Schedule evaluation_schedule(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy);
// A save that no step follows.
Schedule final_save_schedule(const std::vector<BlockFacts>& blocks, const Strategy& strategy);

// Largest bytes that the step with its save, a validation and the last save may have in memory.
int64_t most_memory(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy, Tier tier = Tier::host);

// What may be chosen: everything that the settings leave open.
struct StrategyLimits {
  MemorySettings memory;
  int64_t room = 0;  // bytes for tensors
  RankLayout layout = {};
  bool by_block = false;  // no other order: another stage of the pipeline has it
  int64_t device = 0;     // bytes for tensors in the device's memory, where blocks are computed on one

  // Before anything is chosen. Parameters that are gathered for each use are gathered for all micro-batches at once.
  Strategy plain() const {
    const bool passing = by_block || layout.device || (layout.sizes().slices() && layout.sizes().zero >= 3);
    return {.order = passing ? ComputeOrder::by_block : ComputeOrder::by_micro, .layout = layout};
  }
};

// Every strategy worth a look that fits the room, none of which is better than another in all respects: those in
// memory before those on disk, less recomputation before more. Empty: nothing fits.
std::vector<Strategy> fitting_strategies(const std::vector<BlockFacts>& blocks, int32_t micros,
                                         const StrategyLimits& limits);

// The one that needs the least memory.
Strategy tightest_strategy(const std::vector<BlockFacts>& blocks, int32_t micros, const StrategyLimits& limits);

// Windows worth a look, rising.
std::vector<int32_t> windows_to_try(const MemorySettings& memory, bool device, size_t blocks);

// "full recompute, 22 of 26 blocks on disk, window 2"; empty when there is nothing to say.
std::string describe(const Strategy& strategy);

}  // namespace megalith

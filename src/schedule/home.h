// Says where the state of one block lives on this rank. Both schedules and the engine use this definition.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/rank_layout.h"
#include "schedule/op.h"

namespace megalith {

// The part of a block's state that is in memory between its uses, and the part on disk.
enum class Placement : uint8_t {
  in_memory,          // all state is in memory
  optimizer_on_disk,  // the optimizer state is on disk; it streams through memory when the update is applied
  on_disk,            // optimizer state, parameters and gradient are on disk
};

struct Home {
  bool here = true;       // the stage of this rank owns the block
  Placement placement = Placement::in_memory;
  bool sliced = false;             // ZeRO: this rank updates one slice
  bool parameters_stay = true;     // between steps, all parameters stay in the memory where the block computes
  bool gradient_stays = true;      // the same for the gradient
  bool operator==(const Home&) const = default;
};

Home home_of(const RankLayout& layout, BlockId block, Placement placement);

// The homes of all blocks of a model. `placement` has one entry per block; empty means that all blocks are in memory.
std::vector<Home> homes(const RankLayout& layout, size_t blocks, const std::vector<Placement>& placement);

}  // namespace megalith

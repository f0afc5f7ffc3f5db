// Where the state of one block lives on this rank. Schedules and the engine both read it from here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/rank_layout.h"
#include "schedule/op.h"

namespace megalith {

// Where the state of a block is between its uses.
enum class Placement : uint8_t {
  in_memory,          // all of it
  optimizer_on_disk,  // the optimizer state streams through memory when the update is applied
  on_disk,            // parameters and gradient, too
};

struct Home {
  bool here = true;       // the stage of this rank owns the block
  Placement placement = Placement::in_memory;
  bool sliced = false;             // ZeRO: this rank updates one slice
  bool parameters_stay = true;     // whole, where the block computes, between steps
  bool gradient_stays = true;
  bool operator==(const Home&) const = default;
};

Home home_of(const RankLayout& layout, BlockId block, Placement placement);

// All blocks of a model. `placement`: by block; empty: all in memory.
std::vector<Home> homes(const RankLayout& layout, size_t blocks, const std::vector<Placement>& placement);

}  // namespace megalith

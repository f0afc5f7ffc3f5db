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
  bool borrowed = false;  // the tied table of another stage, on the rank of the head
  bool on_device = false;
  Placement placement = Placement::in_memory;
  bool sliced = false;             // ZeRO: this rank updates one slice
  bool parameters_stay = true;     // whole, where the block computes, between steps
  bool gradient_stays = true;
  bool separate_master = false;    // the optimizer updates a different buffer than the one the block computes with
  bool separate_gradient = false;  // norm and optimizer read a different gradient than the one backward adds to
  bool operator==(const Home&) const = default;
};

// `borrowed_table`: the block whose table another stage lends to this one, or kNoBlock.
Home home_of(const RankLayout& layout, BlockId block, Placement placement, BlockId borrowed_table);

// All blocks of a model. `placement`: by block; empty: all in memory. `tied_table`: the block whose table the head
// multiplies with, or kNoBlock.
std::vector<Home> homes(const RankLayout& layout, size_t blocks, const std::vector<Placement>& placement,
                        BlockId tied_table);

}  // namespace megalith

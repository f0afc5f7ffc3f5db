// A schedule is data: the ops of one training step of one rank. Passes write it. The checker, the simulator and the lanes
// read the same list. It contains no tensors and no MPI.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/block_facts.h"
#include "layout/rank_layout.h"
#include "schedule/home.h"
#include "schedule/op.h"

namespace megalith {

struct Schedule {
  std::vector<BlockFacts> blocks;
  std::vector<Placement> placement;  // by block; empty: all blocks are in memory
  std::vector<Keep> keep;            // by block; empty: every block keeps all
  std::vector<bool> offloads;        // by block: the input that it keeps waits on disk; empty: no block offloads
  RankLayout layout;
  int32_t micros = 1;
  // Further micro-batches, numbered from `micros` on. They are the same sequences, and only go forward. If the loss is a
  // function of the whole batch, it needs the outputs of all micro-batches before the first backward.
  int32_t first_pass = 0;
  bool training = true;              // false: only forward passes (validation)
  bool defers_weight_gradients = false;  // zero-bubble: the op weight_gradient computes what backward defers
  bool saves = false;                // the step writes a checkpoint
  std::vector<Op> ops;               // in a valid order: `after` names only earlier ops

  Placement placed(BlockId block) const {
    return placement.empty() ? Placement::in_memory : placement[static_cast<size_t>(block)];
  }
  bool offloads_input(BlockId block) const { return !offloads.empty() && offloads[static_cast<size_t>(block)]; }
  Keep keeps(BlockId block) const { return keep.empty() ? Keep::all : keep[static_cast<size_t>(block)]; }
  BlockId head() const { return static_cast<BlockId>(blocks.size()) - 1; }
  int32_t stage(BlockId block) const { return layout.stage(block); }
  int32_t all_micros() const { return micros + first_pass; }
  bool goes_back(MicroId micro) const { return training && micro < micros; }
  bool scores_batch() const { return !blocks.empty() && blocks.back().scores_batch; }
  // Says where the state of a block lives. parameters_stay() and gradient_stays() return its fields.
  Home home(BlockId block) const { return home_of(layout, block, placed(block)); }
  bool holds(BlockId block) const { return stage(block) == layout.stage(); }
  bool parameters_stay(BlockId block) const { return home(block).parameters_stay; }
  bool gradient_stays(BlockId block) const { return home(block).gradient_stays; }
  // True with ZeRO: the state of every block is sliced over the ranks that hold it. Each rank updates its slice.
  bool slices() const { return layout.sizes().slices(); }
  bool separate_master() const { return layout.separate_master(); }
  bool separate_gradient() const { return layout.separate_gradient(); }
  // This rank's part of a block's parameters (in elements, without gaps) and optimizer state. These are upper limits: slices
  // differ by a few elements.
  int64_t slice_elements(BlockId block) const;
  int64_t optimizer_slice_bytes(BlockId block) const;
  // The block whose table a tied head multiplies with, or kNoBlock if the head is not tied.
  BlockId tied_table() const { return blocks.empty() ? kNoBlock : blocks.back().tied_to; }
  // True if the table and the head are on different ranks. The head's rank borrows the table.
  bool table_is_remote() const { return tied_table() != kNoBlock && stage(tied_table()) != stage(head()); }
  BlockId borrowed_table() const { return table_is_remote() && holds(head()) ? tied_table() : kNoBlock; }
  bool borrows(BlockId block) const { return block != kNoBlock && block == borrowed_table(); }
  bool defers(BlockId block) const {
    return defers_weight_gradients && training && blocks[static_cast<size_t>(block)].kind == BlockKind::layer;
  }
  // True if the recomputation of a block also makes its output again, because the next block did not keep its input.
  bool output_again(BlockId block) const {
    return static_cast<size_t>(block) + 2 < blocks.size() && keeps(block + 1) == Keep::none;
  }
};

std::string_view name(OpKind kind);
std::string_view name(Lane lane);
std::string describe(const Schedule& schedule, const Op& op);  // "backward of layer 3, micro-batch 1"
std::string describe(const Schedule& schedule, OpId op);

}  // namespace megalith

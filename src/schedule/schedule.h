// A schedule is data: the ops of one training step of one rank. Passes write it; the checker, the simulator
// and the executor read the same list. Pure: no tensors, no MPI.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/block_facts.h"
#include "schedule/op.h"

namespace megalith {

// Where a block's state lives between its uses.
enum class Placement : uint8_t {
  in_memory,          // all of it
  optimizer_on_disk,  // the optimizer state streams through memory when the update is applied
  on_disk,            // parameters and gradient, too
};

// How the state of a block is divided among the ranks that hold it and work on other sequences with it.
struct Sharding {
  int32_t replicas = 1;  // that many ranks
  int32_t zero = 0;      // sliced over them: 1 optimizer state, 2 gradients too, 3 parameters too
  int32_t expert = 1;    // experts are spread over so many of them: as many times fewer have the same ones
  int32_t expert_replicas() const { return replicas / expert; }
  bool slices() const { return replicas > 1 && zero > 0; }
};

// Which blocks are on which stage of the pipeline, and which stage this rank is.
struct Stages {
  std::vector<int32_t> of;  // by block; empty: there is one stage
  int32_t here = 0;
};

// How a run is divided, among ranks, seen from one of them, and between the host and a device.
struct Division {
  int32_t ranks = 1;   // of the whole run
  int32_t tensor = 1;  // that share the inside of each block: of what is the same on all, each has a share of the gradient
  Sharding sharding;
  Stages stages;
  // Blocks are computed on a device: parameters, gradients and activations are there while they are used; the state is at
  // home in the host's memory or on its disk, where norms and updates are made.
  bool device = false;
};

struct Schedule {
  std::vector<BlockFacts> blocks;
  std::vector<Placement> placement;  // by block; empty: all in memory
  std::vector<Keep> keep;            // by block; empty: all of them all
  std::vector<bool> offloads;        // by block: the input that it keeps waits on disk; empty: none does
  Division division;
  int32_t micros = 1;
  bool training = true;              // false: forward passes only (validation)
  bool defers_weight_gradients = false;  // zero-bubble: the op weight_gradient computes what backward defers
  bool saves = false;                // the step writes a checkpoint
  std::vector<Op> ops;               // in a valid order: `after` names earlier ops only

  Placement placed(BlockId block) const {
    return placement.empty() ? Placement::in_memory : placement[static_cast<size_t>(block)];
  }
  bool offloads_input(BlockId block) const { return !offloads.empty() && offloads[static_cast<size_t>(block)]; }
  Keep keeps(BlockId block) const { return keep.empty() ? Keep::all : keep[static_cast<size_t>(block)]; }
  BlockId head() const { return static_cast<BlockId>(blocks.size()) - 1; }
  int32_t stage(BlockId block) const {
    return division.stages.of.empty() ? 0 : division.stages.of[static_cast<size_t>(block)];
  }
  bool holds(BlockId block) const { return stage(block) == division.stages.here; }
  // Its state is sliced over the ranks that hold it, each of which updates its slice.
  bool slices() const { return division.sharding.slices(); }
  // Gradients are summed over ranks.
  bool reduces() const { return division.sharding.replicas > 1 || division.tensor > 1; }
  // The optimizer updates a different buffer than the one blocks compute with: a ZeRO slice, or the host copy.
  bool separate_master() const { return slices() || division.device; }
  // Norm and optimizer read a different gradient than the one backward adds to.
  bool separate_gradient() const { return reduces() || division.device; }
  // Whether its whole parameters, its whole gradient stay where it is computed from step to step.
  bool parameters_stay(BlockId block) const {
    return holds(block) && placed(block) != Placement::on_disk && !division.device &&
           !(slices() && division.sharding.zero >= 3);
  }
  bool gradient_stays(BlockId block) const {
    return holds(block) && placed(block) != Placement::on_disk && !division.device &&
           !(slices() && division.sharding.zero >= 2);
  }
  // What this rank has of a block's parameters (elements, without the gaps) and optimizer state; at most: slices differ
  // by a few elements.
  int64_t slice_elements(BlockId block) const;
  int64_t optimizer_slice_bytes(BlockId block) const;
  // Block whose table a tied head multiplies with; kNoBlock: the head is not tied.
  BlockId tied_table() const { return blocks.empty() ? kNoBlock : blocks.back().tied_to; }
  // The table is on another rank than the head, which borrows it.
  bool table_is_remote() const { return tied_table() != kNoBlock && stage(tied_table()) != stage(head()); }
  bool borrows(BlockId block) const { return table_is_remote() && block == tied_table() && holds(head()); }
  bool defers(BlockId block) const {
    return defers_weight_gradients && training && blocks[static_cast<size_t>(block)].kind == BlockKind::layer;
  }
  // Whether a block's recomputation makes its output again, as the input that the next one did not keep.
  bool output_again(BlockId block) const {
    return static_cast<size_t>(block) + 2 < blocks.size() && keeps(block + 1) == Keep::none;
  }
};

std::string_view name(OpKind kind);
std::string_view name(Lane lane);
std::string describe(const Schedule& schedule, const Op& op);  // "backward of layer 3, micro-batch 1"
std::string describe(const Schedule& schedule, OpId op);

}  // namespace megalith

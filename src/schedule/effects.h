// What each kind of op needs and leaves behind: the one table that checker and memory accounting read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

enum class Thing : uint8_t {
  targets,          // the step's number of target tokens
  loss,             // the step's sum
  parameters,       // block
  optimizer,        // block: its state
  gradient,         // block: what its own backward (or loss) adds to
  tied_gradient,    // block: the table that a tied head adds to, apart from the rest of the block's gradient
  product_gradient, // layer: what weigh adds to, apart from the rest of the block's gradient
  stowed_gradient,  // block: on disk, where it waits for its update
  activation,       // block, micro: its output, the next block's input, kept until that block's backward
  saved,            // block, micro: what forward keeps for backward
  attention,        // block, micro: the part of it that a layer keeps which makes the rest again
  output_gradient,  // block, micro: gradient of its output
  deferred,         // layer, micro: what its weight products wait with
  parked,           // block, micro: its input, on disk or, of a device, in the host's memory
  aside,            // block, micro: gradients kept until fold
  slice,            // block: this rank's slice of its parameters, up to date and in memory; of a device, the host's copy
  sum,              // block: its gradient summed over the ranks that hold it; of a device, the host's copy
  norm,             // block: sum of squares
  totals,           // of losses and norms, over all ranks
  scale,            // of the step's updates
  written,          // block: its parts in the checkpoint being written
  checkpoint,       // durable and visible
};
inline constexpr int kThings = 22;

enum class Touch : uint8_t {
  needs,    // reads what must be there
  makes,    // writes what must not be there yet
  adds,     // one contribution of several, in micro-batch order, the one without a micro-batch last
  takes,    // reads and frees
  changes,  // overwrites in place, once a step; nobody may read it afterwards in this step
};

struct Effect {
  Touch touch;
  Thing thing;
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  bool writes() const { return touch != Touch::needs; }
};

// The op's block and micro-batch must be within the schedule's.
std::vector<Effect> effects(const Schedule& schedule, const Op& op);

// Whether it is there before the step begins. Of a spilled block, state counts as there once it is up to date in
// this step: renew makes it.
bool there_on_entry(const Schedule& schedule, const Effect& effect);
// Whether it may be there when the step has ended: the model's state and the step's results.
bool there_on_exit(const Schedule& schedule, const Effect& effect);
// Contributions that make it whole; 0 for what nobody adds to.
int32_t contributions(const Schedule& schedule, const Effect& effect);

// Dense numbering of all things of a schedule, for tables.
size_t thing_count(const Schedule& schedule);
size_t thing_index(const Schedule& schedule, const Effect& effect);

std::string describe(const Schedule& schedule,
                     const Effect& effect);  // "activation of layer 3, micro-batch 1"

}  // namespace megalith

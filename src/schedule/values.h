// The values that ops read and write in a step, and how an op accesses them. Each op family lists the accesses of its ops
// (schedule/ops/). The checker and the memory accounting use these lists.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

enum class Value : uint8_t {
  target_count,        // number of target tokens of the step
  loss_sum,            // sum of the losses of the step
  representation,      // head, micro: output of the head, if its loss is a function of the whole batch
  representation_gradient,  // head, micro: gradient of that output
  parameters,          // block: the parameters that it computes with
  optimizer_state,     // block
  gradient,            // block: the buffer that its own backward (or loss) adds to
  tied_gradient,       // block: gradient of the table that a tied head adds to, separate from the rest of the block
  weight_gradient,     // layer: the buffer that the op weight_gradient adds to, separate from the rest of the block
  offloaded_gradient,  // block: gradient on disk, until the pending update is applied
  activation,          // block, micro: its output, the input of the next block, kept until that block's backward
  saved_tensors,       // block, micro: what forward keeps for backward
  saved_attention,     // block, micro: the part of saved_tensors that a layer keeps if it recomputes the rest
  output_gradient,     // block, micro: gradient of its output
  deferred_inputs,     // layer, micro: operands of deferred weight gradients
  offloaded_input,     // block, micro: its input, on disk or, with a device, in host memory
  sparse_gradient,     // block, micro: rows of the embedding's gradient, until embedding_gradient adds them
  master_parameters,   // block: the optimizer's buffer, if it is separate: a ZeRO slice, or the host copy
  reduced_gradient,    // block: gradient summed over its replicas; with a device, the host copy
  gradient_norm,       // block: sum of squares
  totals,              // losses and norms, summed over all ranks
  update_decision,     // scale of the step's updates, or that the step is skipped
  saved_block,         // block: its tensors in the checkpoint being written
  checkpoint,          // the checkpoint, durable and visible
};
inline constexpr int kValues = 24;

enum class Access : uint8_t {
  read,        // the value must be there
  create,      // the value must not be there yet
  accumulate,  // adds one of several contributions, in micro-batch order; last, the one without a micro-batch
  consume,     // reads and frees the value
  overwrite,   // changes the value in place, once per step; no later op of this step may read it
};

struct Effect {
  Access access;
  Value value;
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  bool writes() const { return access != Access::read; }
};

// The accesses of one op, in order. Callers reuse one list for many ops, so that it keeps its memory.
class Effects {
 public:
  void read(Value value, BlockId block = kNoBlock, MicroId micro = kNoMicro) { add(Access::read, value, block, micro); }
  void create(Value value, BlockId block = kNoBlock, MicroId micro = kNoMicro) { add(Access::create, value, block, micro); }
  void consume(Value value, BlockId block = kNoBlock, MicroId micro = kNoMicro) { add(Access::consume, value, block, micro); }
  void overwrite(Value value, BlockId block) { add(Access::overwrite, value, block, kNoMicro); }
  void accumulate(Value value, BlockId block, MicroId micro) { add(Access::accumulate, value, block, micro); }
  void add(Access access, Value value, BlockId block, MicroId micro) { list_.push_back({access, value, block, micro}); }

  // Adds all values that make up the gradient of a block, with the same access.
  void gradient_of(const Schedule& schedule, BlockId block, Access access);

  void clear() { list_.clear(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<Effect> list_;
};

// Writes the effects of an op to `out`, after clearing it. The op's block and micro-batch must be within the schedule.
void effects_of(const Schedule& schedule, const Op& op, Effects& out);

// The value that the optimizer updates: the parameters themselves, or the master parameters.
Value master_of(const Schedule& schedule);

// True if the value exists before the step begins. The state of a spilled block does not: it exists once load_updated has
// brought it up to date.
bool exists_on_entry(const Schedule& schedule, const Effect& effect);
// True if a value that existed on entry belongs to a pending update. Only the op that applies the update may use it.
bool belongs_to_pending_update(const Effect& effect);
// True if the value may exist after the step: the state of the model and the results of the step.
bool may_exist_on_exit(const Schedule& schedule, const Effect& effect);
// Number of contributions that complete the value; 0 if no op accumulates it.
int32_t contributions(const Schedule& schedule, const Effect& effect);

// Dense numbering of all values of a schedule, for tables.
size_t value_count(const Schedule& schedule);
size_t value_index(const Schedule& schedule, const Effect& effect);

std::string describe(const Schedule& schedule, const Effect& effect);  // "activation of layer 3, micro-batch 1"

}  // namespace megalith

// Helpers of several op families: sizes of a block's state, and effects that ops of two families have.
#pragma once
#include "schedule/schedule.h"
#include "schedule/values.h"

namespace megalith::ops {

inline constexpr int64_t kFloatBytes = 4;  // master parameters and gradients are float32 in every precision

// All parameters of a block, as float32.
inline double whole_bytes(const Schedule& s, BlockId block) {
  return static_cast<double>(kFloatBytes) * static_cast<double>(s.blocks[block].parameters);
}
// Bytes of the parameters and of the optimizer state that this rank updates.
inline double slice_bytes(const Schedule& s, BlockId block) {
  return static_cast<double>(kFloatBytes) * static_cast<double>(s.slice_elements(block));
}
inline double state_bytes(const Schedule& s, BlockId block) { return static_cast<double>(s.optimizer_slice_bytes(block)); }

// Bytes of the parameters that the block computes with. In 16-bit precision, the float32 master of a spilled block is never
// completely in memory.
inline int64_t computing_bytes(const BlockFacts& block) {
  return block.compute_copy_bytes > 0 ? block.compute_copy_bytes : kFloatBytes * block.parameters;
}

// The parts of the saved tensors that a layer keeps from forward to backward, and that it recomputes.
inline int64_t kept_bytes(const Schedule& s, BlockId block) {
  return s.keeps(block) == Keep::attention ? s.blocks[block].attention_saved_bytes : 0;
}
inline int64_t recomputed_bytes(const Schedule& s, BlockId block) {
  return s.blocks[block].saved_bytes - kept_bytes(s, block);
}

// Makes the parameters that a block computes with from the master: the slices of all ranks, or the host copy.
inline void parameters_from_master(const Schedule& s, const Op& op, Effects& out) {
  out.add(s.placed(op.block) == Placement::on_disk ? Access::consume : Access::read, Value::master_parameters, op.block,
          kNoMicro);
  out.create(Value::parameters, op.block);
}

// Reads losses and norms of this rank. Totals and the update decision are computed from them.
inline void read_results(const Schedule& s, Effects& out) {
  out.read(Value::loss_sum);
  for (BlockId block = 0; s.training && block <= s.head(); block++)
    if (s.holds(block)) out.read(Value::gradient_norm, block);
}

}  // namespace megalith::ops

// Ops that write a checkpoint.
#pragma once
#include "schedule/op_type.h"
#include "schedule/ops/residency.h"
#include "schedule/ops/common.h"

namespace megalith::ops {

inline constexpr OpKind save{28};    // writes the tensors of a block to the checkpoint
inline constexpr OpKind commit{29};  // makes the checkpoint being written durable and visible

namespace save_family {

inline void save_effects(const Schedule& s, const Op& op, Effects& out) {
  if (s.placed(op.block) != Placement::on_disk) out.read(master_of(s), op.block);  // otherwise the copy on disk is read
  out.read(Value::optimizer_state, op.block);
  out.create(Value::saved_block, op.block);
}
inline void commit_effects(const Schedule& s, const Op&, Effects& out) {
  for (BlockId block = 0; block <= s.head(); block++)
    if (s.holds(block)) out.consume(Value::saved_block, block);
  out.create(Value::checkpoint);
}

inline Due each_block(const Schedule& s, BlockId b, MicroId) { return s.saves && s.holds(b) ? Due::once : Due::never; }
inline Due in_a_save(const Schedule& s, BlockId, MicroId) { return s.saves ? Due::once : Due::never; }

inline Traffic save_traffic(const Schedule& s, const Op& op) {
  if (s.placed(op.block) == Placement::in_memory) return {};
  const int64_t values = s.placed(op.block) == Placement::on_disk ? residency_family::values_on_disk(s, op.block) : 0;
  return {.read = values + residency_family::state_on_disk(s, op.block)};
}
inline Cost save_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return write_cost(speeds, slice_bytes(s, op.block) + state_bytes(s, op.block));
}
inline Cost commit_cost(const Schedule&, const Op&, const MachineSpeeds& speeds) {
  return {.seconds = speeds.commit_s + speeds.op_overhead_s, .use = {}};
}
inline int64_t save_workspace(const Schedule& s, const Op& op) {
  const BlockFacts& block = s.blocks[op.block];
  return block.save_workspace_bytes + (s.placed(op.block) == Placement::in_memory ? 0 : block.stream_bytes);
}
// The ranks meet because the files of a checkpoint are complete only when all ranks have written.
inline std::optional<Encounter> commit_meets(const RankSchedule& rank, const Op& op) {
  if (rank.schedule->layout.sizes().ranks() == 1) return std::nullopt;
  return Encounter{{.kind = op.kind}, {{op.kind}}};
}

inline constexpr OpType kTypes[] = {
    {.kind = save, .name = "save", .about = "writes tensors of a block to the checkpoint",
     .colour = "#b8762b", .letter = 'S',
     .due = each_block, .effects = save_effects, .cost = save_cost, .workspace = save_workspace, .traffic = save_traffic},
    {.kind = commit, .name = "commit", .about = "makes the checkpoint durable and visible",
     .colour = "#7a4c17", .letter = 'C',
     .scope = Scope::step, .due = in_a_save, .effects = commit_effects, .cost = commit_cost, .meets = commit_meets},
};

}  // namespace save_family
}  // namespace megalith::ops

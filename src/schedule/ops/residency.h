// Ops that bring the state of a block into memory and free it. They serve blocks on disk, and parameters and gradients
// that do not stay in memory between steps (ZeRO slices, devices, a borrowed table).
#pragma once
#include "schedule/op_type.h"
#include "schedule/ops/common.h"

namespace megalith::ops {

inline constexpr OpKind load_updated{10};      // spilled block: applies the pending update while its parameters are loaded
inline constexpr OpKind load{11};              // spilled block: loads its parameters again
inline constexpr OpKind evict{12};             // frees the block's parameters; writes nothing
inline constexpr OpKind zero_gradient{13};     // allocates and zeroes the block's gradient
inline constexpr OpKind offload_gradient{14};  // spilled block: writes its gradient to disk, where load_updated reads it
inline constexpr OpKind offload_input{15};     // moves the input that is kept for recomputation to disk or host memory
inline constexpr OpKind reload_input{16};      // moves that input back

namespace residency_family {

inline void load_updated_effects(const Schedule& s, const Op& op, Effects& out) {
  const BlockId b = op.block;
  if (s.placed(b) == Placement::on_disk) out.consume(Value::offloaded_gradient, b);
  else if (!s.gradient_stays(b)) out.consume(Value::reduced_gradient, b);
  else if (s.training) out.gradient_of(s, b, Access::create);
  out.create(Value::optimizer_state, b);
  out.create(master_of(s), b);
}
inline void load_effects(const Schedule& s, const Op& op, Effects& out) {
  out.read(Value::optimizer_state, op.block);  // the parameters on disk are up to date once load_updated has run
  out.create(master_of(s), op.block);
}
inline void evict_effects(const Schedule& s, const Op& op, Effects& out) {
  // A step that computes nothing loads only the master parameters.
  out.consume(s.micros == 0 ? master_of(s) : Value::parameters, op.block);
}
inline void zero_gradient_effects(const Schedule& s, const Op& op, Effects& out) {
  if (s.borrows(op.block)) out.create(Value::tied_gradient, op.block);
  else out.gradient_of(s, op.block, Access::create);
}
inline void offload_gradient_effects(const Schedule& s, const Op& op, Effects& out) {
  if (!s.separate_master()) out.gradient_of(s, op.block, Access::consume);
  if (s.separate_gradient()) out.consume(Value::reduced_gradient, op.block);
  out.create(Value::offloaded_gradient, op.block);
}
inline void offload_input_effects(const Schedule&, const Op& op, Effects& out) {
  out.consume(Value::activation, op.block - 1, op.micro);
  out.create(Value::offloaded_input, op.block, op.micro);
}
inline void reload_input_effects(const Schedule&, const Op& op, Effects& out) {
  out.consume(Value::offloaded_input, op.block, op.micro);
  out.create(Value::activation, op.block - 1, op.micro);
}

inline Due each_spilled(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.placed(b) != Placement::in_memory ? Due::once : Due::never;
}
inline Due parameters_on_disk(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.placed(b) == Placement::on_disk ? Due::any : Due::never;
}
inline Due parameters_leave(const Schedule& s, BlockId b, MicroId) {
  return !s.parameters_stay(b) && (s.holds(b) || s.borrows(b)) ? Due::any : Due::never;
}
inline Due gradient_leaves(const Schedule& s, BlockId b, MicroId) {
  if (!s.training) return Due::never;
  return s.holds(b) ? (s.gradient_stays(b) ? Due::never : Due::once) : s.borrows(b) ? Due::once : Due::never;
}
inline Due gradient_goes_to_disk(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.training && s.placed(b) == Placement::on_disk ? Due::once : Due::never;
}
inline Due input_is_offloaded(const Schedule& s, BlockId b, MicroId m) {
  return s.holds(b) && s.goes_back(m) && b != s.head() && s.offloads_input(b) ? Due::once : Due::never;
}

// Bytes of float32 values and of optimizer state that a spilled block has on disk.
inline int64_t values_on_disk(const Schedule& s, BlockId b) { return kFloatBytes * s.slice_elements(b); }
inline int64_t state_on_disk(const Schedule& s, BlockId b) {
  return s.blocks[b].optimizer_streams ? s.optimizer_slice_bytes(b) : 0;
}

inline Traffic load_updated_traffic(const Schedule& s, const Op& op) {
  if (s.placed(op.block) == Placement::in_memory) return {};
  const int64_t values = values_on_disk(s, op.block), state = state_on_disk(s, op.block);
  if (s.placed(op.block) == Placement::on_disk) return {.read = 2 * values + state, .written = values + state};
  return {.read = state, .written = state};
}
inline Traffic load_traffic(const Schedule& s, const Op& op) {
  return s.placed(op.block) == Placement::in_memory ? Traffic{} : Traffic{.read = values_on_disk(s, op.block)};
}
inline Traffic offload_gradient_traffic(const Schedule& s, const Op& op) {
  return s.placed(op.block) == Placement::in_memory ? Traffic{} : Traffic{.written = values_on_disk(s, op.block)};
}
// With a device, offloaded inputs wait in host memory.
inline Traffic offload_input_traffic(const Schedule& s, const Op& op) {
  const int64_t bytes = s.blocks[op.block - 1].output_bytes;
  return s.layout.device ? Traffic{.copied = bytes} : Traffic{.written = bytes};
}
inline Traffic reload_input_traffic(const Schedule& s, const Op& op) {
  const int64_t bytes = s.blocks[op.block - 1].output_bytes;
  return s.layout.device ? Traffic{.copied = bytes} : Traffic{.read = bytes};
}

inline Cost load_updated_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  const bool ample = s.blocks[op.block].streams_amply;
  return spill_cost(speeds, load_updated_traffic(s, op), 4 * slice_bytes(s, op.block) + 2 * state_bytes(s, op.block),
                    ample ? Worker::everyone : Worker::lane, ample ? speeds.load_updated : speeds.load_updated_scarce);
}
inline Cost load_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return spill_cost(speeds, load_traffic(s, op), 0, Worker::everyone, speeds.load);
}
inline Cost offload_gradient_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return spill_cost(speeds, offload_gradient_traffic(s, op), 0, Worker::everyone, speeds.offload_gradient);
}
// On disk, the factor 2 is the copy to or from staging: a read and a write of memory.
inline Cost input_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  const Traffic traffic = traffic_of(s, op);
  if (s.layout.device) return copy_cost(speeds, static_cast<double>(traffic.copied));
  return spill_cost(speeds, traffic, 2.0 * static_cast<double>(traffic.read + traffic.written), Worker::lane);
}
inline Cost zero_gradient_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return compute_cost(speeds, 0, whole_bytes(s, op.block));
}

inline int64_t load_updated_workspace(const Schedule& s, const Op& op) { return s.blocks[op.block].stream_bytes; }
inline int64_t load_workspace(const Schedule& s, const Op& op) { return s.blocks[op.block].load_bytes; }
inline int64_t input_workspace(const Schedule& s, const Op& op) {
  return s.layout.device ? 0 : s.blocks[op.block].input_offload_bytes;
}

inline constexpr OpType kTypes[] = {
    {.kind = load_updated, .name = "load updated", .about = "reads state from disk and applies the pending update",
     .colour = "#2f9d8f", .letter = 'u', .due = each_spilled, .effects = load_updated_effects, .cost = load_updated_cost,
     .workspace = load_updated_workspace, .traffic = load_updated_traffic},
    {.kind = load, .name = "load", .about = "reads parameters from disk", .colour = "#7cc7a0", .letter = 'l',
     .light = true, .due = parameters_on_disk, .effects = load_effects, .cost = load_cost, .workspace = load_workspace,
     .traffic = load_traffic},
    {.kind = evict, .name = "evict", .about = "frees parameters; writes nothing", .colour = "#c9ccd1", .letter = '-',
     .due = parameters_leave, .effects = evict_effects},
    {.kind = zero_gradient, .name = "zero gradient", .about = "allocates a gradient and sets it to zero",
     .colour = "#dcdfe3",
     .letter = '0', .due = gradient_leaves, .effects = zero_gradient_effects, .cost = zero_gradient_cost},
    {.kind = offload_gradient, .name = "offload gradient", .about = "writes a gradient to disk",
     .colour = "#d99a0b", .letter = 'g',
     .due = gradient_goes_to_disk, .effects = offload_gradient_effects, .cost = offload_gradient_cost,
     .traffic = offload_gradient_traffic},
    {.kind = offload_input, .name = "offload input", .about = "moves the input of a layer to disk or host memory",
     .colour = "#e0bd6a",
     .letter = 'p', .scope = Scope::micro, .due = input_is_offloaded, .effects = offload_input_effects, .cost = input_cost,
     .workspace = input_workspace, .traffic = offload_input_traffic},
    {.kind = reload_input, .name = "reload input", .about = "moves the input of a layer back", .colour = "#a8d8be",
     .letter = 'q', .scope = Scope::micro, .due = input_is_offloaded, .effects = reload_input_effects, .cost = input_cost,
     .workspace = input_workspace, .traffic = reload_input_traffic},
};

}  // namespace residency_family
}  // namespace megalith::ops

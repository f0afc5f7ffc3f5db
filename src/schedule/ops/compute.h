// Ops on the compute lane: forward and backward of blocks, gradient norms, the optimizer step.
#pragma once
#include <algorithm>

#include "schedule/op_type.h"
#include "schedule/ops/common.h"

namespace megalith::ops {

inline constexpr OpKind count_targets{0};       // number of target tokens of the step: losses are divided by it
inline constexpr OpKind forward{1};             // computes its activation and saved tensors from the activation before
inline constexpr OpKind loss{2};                // head: forward and backward in one op, so all logits never exist at once
inline constexpr OpKind recompute{3};           // forward again, to make the tensors for backward that were not kept
inline constexpr OpKind backward{4};            // consumes the gradient of its output, adds to its parameters' gradient
inline constexpr OpKind weight_gradient{5};     // layer: the weight gradients that its backward deferred
inline constexpr OpKind embedding_gradient{6};  // tied table: adds the sparse rows after all other contributions
inline constexpr OpKind gradient_norm{7};       // sum of squares of the block's gradient
inline constexpr OpKind prepare_update{8};      // from all norms: the scale of the update, or that the step is skipped
inline constexpr OpKind optimizer_step{9};
inline constexpr OpKind batch_loss{30};         // head: loss of the whole batch, and the gradients of its representations

namespace compute_family {

// True if the input of a block stays in memory after its forward, unpacked.
inline bool keeps_input(const Schedule& s, BlockId b, MicroId micro) {
  if (!s.goes_back(micro) || s.keeps(b) == Keep::none) return false;
  return s.keeps(b) == Keep::input || !s.blocks[b].packs_input;
}

// Effects of the head that computes the loss of a micro-batch, or its part in the loss of the batch.
inline void score_effects(const Schedule& s, const Op& op, Effects& out) {
  if (s.scores_batch()) {
    if (s.goes_back(op.micro)) out.consume(Value::representation_gradient, op.block, op.micro);
    else out.create(Value::representation, op.block, op.micro);
    return;
  }
  out.read(Value::target_count);
  if (s.tied_table() != kNoBlock) out.read(Value::parameters, s.tied_table());
  out.accumulate(Value::loss_sum, kNoBlock, op.micro);
}

inline void forward_effects(const Schedule& s, const Op& op, Effects& out) {
  const BlockId b = op.block, head = s.head();
  out.read(Value::parameters, b);
  if (b > 0) out.add(keeps_input(s, b, op.micro) ? Access::read : Access::consume, Value::activation, b - 1, op.micro);
  if (b < head) out.create(Value::activation, b, op.micro);
  if (b == head) score_effects(s, op, out);
  if (s.goes_back(op.micro) && s.keeps(b) == Keep::all) out.create(Value::saved_tensors, b, op.micro);
  if (s.goes_back(op.micro) && s.keeps(b) == Keep::attention) out.create(Value::saved_attention, b, op.micro);
}

inline void recompute_effects(const Schedule& s, const Op& op, Effects& out) {
  const BlockId b = op.block;
  out.read(Value::parameters, b);
  if (b > 0) out.add(s.blocks[b].packs_input ? Access::consume : Access::read, Value::activation, b - 1, op.micro);
  if (s.keeps(b) == Keep::attention) out.read(Value::saved_attention, b, op.micro);
  out.create(Value::saved_tensors, b, op.micro);
  if (s.output_again(b)) out.create(Value::activation, b, op.micro);
}

inline void loss_effects(const Schedule& s, const Op& op, Effects& out) {
  out.read(Value::parameters, op.block);
  out.consume(Value::activation, op.block - 1, op.micro);
  score_effects(s, op, out);
  out.accumulate(Value::gradient, op.block, op.micro);
  if (s.tied_table() != kNoBlock) out.accumulate(Value::tied_gradient, s.tied_table(), op.micro);
  out.create(Value::output_gradient, op.block - 1, op.micro);
}

// Reads the outputs of all micro-batches: of the first pass, or of the only pass of a validation.
inline void batch_loss_effects(const Schedule& s, const Op& op, Effects& out) {
  out.read(Value::target_count);
  for (MicroId micro = 0; micro < s.micros; micro++) {
    out.consume(Value::representation, op.block, s.first_pass + micro);
    if (s.training) out.create(Value::representation_gradient, op.block, micro);
  }
  out.accumulate(Value::loss_sum, kNoBlock, 0);
}

inline void backward_effects(const Schedule& s, const Op& op, Effects& out) {
  const BlockId b = op.block;
  if (s.blocks[b].backward_uses_parameters) out.read(Value::parameters, b);
  if (s.keeps(b) == Keep::attention) out.consume(Value::saved_attention, b, op.micro);
  out.consume(Value::saved_tensors, b, op.micro);
  out.consume(Value::output_gradient, b, op.micro);
  if (b > 0 && !s.blocks[b].packs_input) out.consume(Value::activation, b - 1, op.micro);
  if (b > 0) out.create(Value::output_gradient, b - 1, op.micro);
  out.accumulate(Value::gradient, b, op.micro);
  if (b == s.tied_table()) out.create(Value::sparse_gradient, b, op.micro);
  if (s.defers(b)) out.create(Value::deferred_inputs, b, op.micro);
}

inline void weight_gradient_effects(const Schedule&, const Op& op, Effects& out) {
  out.consume(Value::deferred_inputs, op.block, op.micro);
  out.accumulate(Value::weight_gradient, op.block, op.micro);
}

inline void embedding_gradient_effects(const Schedule& s, const Op& op, Effects& out) {
  for (MicroId micro = 0; micro < s.micros; micro++) out.consume(Value::sparse_gradient, op.block, micro);
  out.accumulate(Value::tied_gradient, op.block, kNoMicro);
}

inline void gradient_norm_effects(const Schedule& s, const Op& op, Effects& out) {
  if (s.separate_gradient()) out.read(Value::reduced_gradient, op.block);
  else out.gradient_of(s, op.block, Access::read);
  out.create(Value::gradient_norm, op.block);
}

inline void prepare_update_effects(const Schedule& s, const Op&, Effects& out) {
  if (s.layout.sizes().ranks() > 1) out.read(Value::totals);
  else read_results(s, out);
  out.create(Value::update_decision);
}

inline void optimizer_step_effects(const Schedule& s, const Op& op, Effects& out) {
  const BlockId b = op.block;
  out.read(Value::update_decision);
  out.overwrite(master_of(s), b);
  if (s.slices() && s.parameters_stay(b)) out.overwrite(Value::parameters, b);  // the slice is part of them
  out.overwrite(Value::optimizer_state, b);
  if (s.separate_gradient()) out.consume(Value::reduced_gradient, b);
  if (s.gradient_stays(b)) out.gradient_of(s, b, Access::overwrite);  // zeroed for the next step
}

inline Due each_block_forward(const Schedule& s, BlockId b, MicroId m) {
  return s.holds(b) && !(s.goes_back(m) && b == s.head()) ? Due::once : Due::never;
}
inline Due head_in_training(const Schedule& s, BlockId b, MicroId m) {
  return s.holds(b) && s.goes_back(m) && b == s.head() ? Due::once : Due::never;
}
inline Due head_of_batch(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.micros > 0 && s.scores_batch() && b == s.head() ? Due::once : Due::never;
}
inline bool goes_back(const Schedule& s, BlockId b, MicroId m) { return s.holds(b) && s.goes_back(m) && b != s.head(); }
inline Due each_block_back(const Schedule& s, BlockId b, MicroId m) { return goes_back(s, b, m) ? Due::once : Due::never; }
inline Due each_recomputed(const Schedule& s, BlockId b, MicroId m) {
  return goes_back(s, b, m) && s.keeps(b) != Keep::all ? Due::once : Due::never;
}
inline Due each_deferred(const Schedule& s, BlockId b, MicroId m) {
  return goes_back(s, b, m) && s.defers(b) ? Due::once : Due::never;
}
inline Due tied_table_in_training(const Schedule& s, BlockId b, MicroId) {
  return s.training && b == s.tied_table() && s.holds(b) ? Due::once : Due::never;
}
inline Due each_block_in_training(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.training ? Due::once : Due::never;
}
inline Due each_block_in_memory(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.training && s.placed(b) == Placement::in_memory ? Due::once : Due::never;
}
inline Due with_micro_batches(const Schedule& s, BlockId, MicroId) { return s.micros > 0 ? Due::once : Due::never; }
inline Due in_training(const Schedule& s, BlockId, MicroId) { return s.training ? Due::once : Due::never; }

inline Cost forward_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return compute_cost(speeds, s.blocks[op.block].forward);
}
inline Cost recompute_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return compute_cost(speeds, s.blocks[op.block].again(s.keeps(op.block), s.output_again(op.block)));
}
inline Cost loss_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  BlockWork work = s.blocks[op.block].forward;
  return compute_cost(speeds, work += s.blocks[op.block].backward);
}
inline Cost batch_loss_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return compute_cost(speeds, s.blocks[op.block].batch);
}
inline Cost backward_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  BlockWork work = s.blocks[op.block].backward;
  if (s.defers(op.block)) work.flop -= s.blocks[op.block].weight_flop;
  return compute_cost(speeds, work);
}
inline Cost weight_gradient_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return compute_cost(speeds, s.blocks[op.block].weight_flop, 0);
}
inline Cost embedding_gradient_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  // Reads the sparse rows, and reads and writes the rows of the table.
  return compute_cost(speeds, 0, 3.0 * static_cast<double>(s.blocks[op.block].sparse_gradient_bytes) * s.micros);
}
inline Cost gradient_norm_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  const double bytes = slice_bytes(s, op.block);
  return op.lane == Lane::compute ? compute_cost(speeds, 0, bytes) : read_cost(speeds, bytes);
}
inline Cost optimizer_step_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  // Reads and writes parameters, gradient and state.
  return compute_cost(speeds, 0, 4 * slice_bytes(s, op.block) + 2 * state_bytes(s, op.block) +
                                     static_cast<double>(s.blocks[op.block].compute_copy_bytes));
}

inline int64_t forward_workspace(const Schedule& s, const Op& op) {
  const BlockFacts& block = s.blocks[op.block];
  // A layer with experts on disk needs staging while it waits for experts.
  const bool waits = s.placed(op.block) != Placement::in_memory && !s.separate_master();
  const int64_t staging = waits ? block.call_bytes : 0;
  if (!s.goes_back(op.micro)) return std::max(block.workspace_bytes, block.validation_bytes) + staging;
  // While the op runs, the tensors that are not kept need memory, too.
  return block.workspace_bytes + staging + (s.keeps(op.block) != Keep::all ? recomputed_bytes(s, op.block) : 0);
}
inline int64_t batch_loss_workspace(const Schedule& s, const Op& op) { return s.blocks[op.block].batch_workspace_bytes; }
inline int64_t block_workspace(const Schedule& s, const Op& op) { return s.blocks[op.block].workspace_bytes; }
inline int64_t backward_workspace(const Schedule& s, const Op& op) {
  const BlockFacts& block = s.blocks[op.block];
  return s.defers(op.block) ? block.deferring_workspace_bytes : block.workspace_bytes;
}
inline int64_t weight_gradient_workspace(const Schedule& s, const Op& op) {
  return s.blocks[op.block].weight_gradient_workspace_bytes;
}

// While the layer runs, rows are sent to the ranks of their experts and back.
inline std::optional<Encounter> meets_experts(const RankSchedule& rank, const Op& op) {
  const Schedule& s = *rank.schedule;
  if (s.layout.sizes().expert == 1 || s.blocks[op.block].forward.exchanges[Axis::expert].calls == 0) return std::nullopt;
  const int32_t stage = s.layout.stage();
  return Encounter{{.kind = op.kind, .stage = stage, .tensor_rank = rank.tensor_rank, .experts = rank.experts,
                    .block = op.block, .micro = op.micro},
                   {{forward, -1, stage, rank.tensor_rank, rank.experts}}};  // one route for all layers and ops
}

// The ranks that hold other sequences of the batch exchange the outputs.
inline std::optional<Encounter> meets_replicas(const RankSchedule& rank, const Op& op) {
  const Schedule& s = *rank.schedule;
  if (s.layout.sizes().data == 1) return std::nullopt;
  const int32_t stage = s.layout.stage();
  return Encounter{{.kind = op.kind, .stage = stage, .tensor_rank = rank.tensor_rank, .block = op.block},
                   {{op.kind, -1, stage, rank.tensor_rank}}};
}

inline constexpr OpType kTypes[] = {
    {.kind = count_targets, .name = "count targets", .about = "counts the target tokens of the step",
     .colour = "#8d939c",
     .letter = '#', .scope = Scope::step, .due = with_micro_batches,
     .effects = [](const Schedule&, const Op&, Effects& out) { out.create(Value::target_count); }},
    {.kind = forward, .name = "forward", .about = "forward pass of a block", .colour = "#9db6f2", .letter = 'F',
     .scope = Scope::micro, .computes = true, .makes_activations = true, .due = each_block_forward, .effects = forward_effects, .cost = forward_cost,
     .workspace = forward_workspace, .meets = meets_experts},
    {.kind = loss, .name = "loss", .about = "forward and backward pass of the head, with the loss",
     .colour = "#e0604c", .letter = 'L',
     .scope = Scope::micro, .computes = true, .due = head_in_training, .effects = loss_effects, .cost = loss_cost,
     .workspace = block_workspace},
    {.kind = recompute, .name = "recompute", .about = "repeats a forward pass, for tensors that backward needs",
     .colour = "#8e5bd0",
     .letter = 'R', .scope = Scope::micro, .computes = true, .repeats = true, .due = each_recomputed, .effects = recompute_effects,
     .cost = recompute_cost, .workspace = block_workspace, .meets = meets_experts},
    {.kind = backward, .name = "backward", .about = "backward pass of a block", .colour = "#3f66cf", .letter = 'B',
     .scope = Scope::micro, .computes = true, .due = each_block_back, .effects = backward_effects, .cost = backward_cost,
     .workspace = backward_workspace, .meets = meets_experts},
    {.kind = weight_gradient, .name = "weight gradient", .about = "computes weight gradients that backward deferred",
     .colour = "#4a9fd8", .letter = 'W', .scope = Scope::micro, .computes = true, .due = each_deferred,
     .effects = weight_gradient_effects, .cost = weight_gradient_cost, .workspace = weight_gradient_workspace},
    {.kind = embedding_gradient, .name = "embedding gradient",
     .about = "adds the rows of used tokens to a tied table's gradient",
     .colour = "#6f7fb0", .letter = 'e', .computes = true, .due = tied_table_in_training,
     .effects = embedding_gradient_effects, .cost = embedding_gradient_cost},
    {.kind = gradient_norm, .name = "gradient norm", .about = "computes the sum of squares of a block's gradient",
     .colour = "#b7c0d8",
     .letter = 'n', .due = each_block_in_training, .effects = gradient_norm_effects, .cost = gradient_norm_cost},
    {.kind = prepare_update, .name = "prepare update", .about = "computes clipping; decides whether to skip the step",
     .colour = "#6b7280", .letter = 'c', .scope = Scope::step, .due = in_training, .effects = prepare_update_effects},
    {.kind = optimizer_step, .name = "optimizer step", .about = "updates a block's parameters", .colour = "#2f9d8f",
     .letter = 'U', .due = each_block_in_memory, .effects = optimizer_step_effects, .cost = optimizer_step_cost},
    {.kind = batch_loss, .name = "batch loss", .about = "loss that compares all sequences of the batch",
     .colour = "#c23b22", .letter = '=', .computes = true, .due = head_of_batch, .effects = batch_loss_effects,
     .cost = batch_loss_cost, .workspace = batch_loss_workspace, .meets = meets_replicas},
};

}  // namespace compute_family
}  // namespace megalith::ops

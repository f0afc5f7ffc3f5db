// Ops between the stages of a pipeline: activations, their gradients, and the tied table of a head on another stage.
#pragma once
#include <utility>

#include "schedule/op_type.h"
#include "schedule/ops/common.h"

namespace megalith::ops {

inline constexpr OpKind send_activation{22};          // sends the block's activation to the rank of the next block
inline constexpr OpKind receive_activation{23};       // receives the activation of a block on another rank
inline constexpr OpKind send_output_gradient{24};     // sends the gradient of an activation to the rank that made it
inline constexpr OpKind receive_output_gradient{25};  // receives the gradient of an activation from the next block's rank
inline constexpr OpKind sync_tied_table{26};          // copies the table to the rank of the tied head; both have the op
inline constexpr OpKind sync_tied_gradient{27};       // moves that head's gradient to the table's rank; both have the op

namespace pipeline_family {

inline bool crosses(const Schedule& s, BlockId b) { return b < s.head() && s.stage(b) != s.stage(b + 1); }
inline Due leaves(const Schedule& s, BlockId b, MicroId) { return crosses(s, b) && s.holds(b) ? Due::once : Due::never; }
inline Due arrives(const Schedule& s, BlockId b, MicroId) {
  return crosses(s, b) && s.holds(b + 1) ? Due::once : Due::never;
}
inline Due gradient_leaves(const Schedule& s, BlockId b, MicroId m) { return s.goes_back(m) ? arrives(s, b, m) : Due::never; }
inline Due gradient_arrives(const Schedule& s, BlockId b, MicroId m) { return s.goes_back(m) ? leaves(s, b, m) : Due::never; }
inline Due remote_table(const Schedule& s, BlockId b, MicroId) {
  const bool remote = s.micros > 0 && s.table_is_remote() && b == s.tied_table();
  return remote && (s.holds(b) || s.borrows(b)) ? Due::once : Due::never;
}
inline Due remote_table_in_training(const Schedule& s, BlockId b, MicroId m) {
  return s.training ? remote_table(s, b, m) : Due::never;
}

inline void sync_tied_table_effects(const Schedule& s, const Op& op, Effects& out) {
  out.add(s.borrows(op.block) ? Access::create : Access::read, Value::parameters, op.block, kNoMicro);
}
inline void sync_tied_gradient_effects(const Schedule& s, const Op& op, Effects& out) {
  if (s.borrows(op.block)) out.consume(Value::tied_gradient, op.block);
  else out.accumulate(Value::tied_gradient, op.block, 0);  // the first of the owner's two contributions
}

// A message keeps one thread of the sender and one of the receiver busy.
inline Cost message_cost(const MachineSpeeds& speeds, int64_t bytes) {
  AxisExchanges exchanges;
  exchanges[Axis::pipeline] = {1, bytes};
  return exchange_cost(speeds, exchanges);
}
inline Cost activation_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return message_cost(speeds, s.blocks[op.block].output_bytes);
}
inline Cost sync_tied_table_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return message_cost(speeds, computing_bytes(s.blocks[op.block]));
}
inline Cost sync_tied_gradient_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return message_cost(speeds, kFloatBytes * s.blocks[op.block].parameters);
}

// `sent` is the kind of the sender's op. `forth` is true from the stage of the block to the next stage, else false.
inline Encounter between_stages(const RankSchedule& rank, const Op& op, OpKind sent, bool forth) {
  int32_t from = rank.schedule->stage(op.block), to = rank.schedule->stage(op.block + 1);
  if (!forth) std::swap(from, to);
  return {{.kind = sent, .column = rank.column, .block = op.block, .micro = op.micro, .pair = true},
          {{sent, rank.column, -1, from, to}}};
}
inline std::optional<Encounter> activation_meets(const RankSchedule& rank, const Op& op) {
  return between_stages(rank, op, send_activation, true);
}
inline std::optional<Encounter> output_gradient_meets(const RankSchedule& rank, const Op& op) {
  return between_stages(rank, op, send_output_gradient, false);
}
inline std::optional<Encounter> table_meets(const RankSchedule& rank, const Op& op) {
  return Encounter{{.kind = op.kind, .column = rank.column, .block = op.block, .micro = op.micro, .pair = true},
                   {{op.kind, rank.column}}};
}

inline constexpr OpType kTypes[] = {
    {.kind = send_activation, .name = "send activation", .about = "sends an activation to the next pipeline stage",
     .colour = "#d77fb4", .letter = '>',
     .scope = Scope::micro, .due = leaves,
     .effects = [](const Schedule&, const Op& op, Effects& out) { out.consume(Value::activation, op.block, op.micro); },
     .cost = activation_cost, .meets = activation_meets},
    {.kind = receive_activation, .name = "receive activation", .about = "receives an activation from the previous stage",
     .colour = "#d77fb4",
     .letter = 'v', .scope = Scope::micro, .due = arrives,
     .effects = [](const Schedule&, const Op& op, Effects& out) { out.create(Value::activation, op.block, op.micro); },
     .cost = activation_cost, .meets = activation_meets},
    {.kind = send_output_gradient, .name = "send output gradient",
     .about = "sends a gradient to the previous pipeline stage", .colour = "#b05fa0",
     .letter = '<', .scope = Scope::micro, .due = gradient_leaves,
     .effects = [](const Schedule&, const Op& op, Effects& out) { out.consume(Value::output_gradient, op.block, op.micro); },
     .cost = activation_cost, .meets = output_gradient_meets},
    {.kind = receive_output_gradient, .name = "receive output gradient",
     .about = "receives a gradient from the next stage",
     .colour = "#b05fa0", .letter = '^', .scope = Scope::micro, .due = gradient_arrives,
     .effects = [](const Schedule&, const Op& op, Effects& out) { out.create(Value::output_gradient, op.block, op.micro); },
     .cost = activation_cost, .meets = output_gradient_meets},
    {.kind = sync_tied_table, .name = "sync tied table",
     .about = "copies the tied embedding table to the rank of the head",
     .colour = "#e3a3c9", .letter = 'T', .due = remote_table, .effects = sync_tied_table_effects,
     .cost = sync_tied_table_cost, .meets = table_meets},
    {.kind = sync_tied_gradient, .name = "sync tied gradient",
     .about = "copies the tied table's gradient from the rank of the head",
     .colour = "#e3a3c9", .letter = 'k', .due = remote_table_in_training, .effects = sync_tied_gradient_effects,
     .cost = sync_tied_gradient_cost, .meets = table_meets},
};

}  // namespace pipeline_family
}  // namespace megalith::ops

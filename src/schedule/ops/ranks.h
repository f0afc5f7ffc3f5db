// Collective ops among the ranks that hold the same blocks, and among all ranks.
#pragma once
#include "schedule/op_type.h"
#include "schedule/ops/compute.h"
#include "schedule/ops/sizes.h"

namespace megalith::ops {

inline constexpr OpKind gather_parameters{19};  // all-gather: whole parameters from the slices of all replicas
inline constexpr OpKind reduce_gradient{20};    // all-reduce, or reduce-scatter for a sliced block
inline constexpr OpKind all_reduce_totals{21};  // loss, targets, squares, stop flag, routing, over all ranks

namespace ranks_family {

inline void gather_parameters_effects(const Schedule& s, const Op& op, Effects& out) {
  out.add(s.placed(op.block) == Placement::on_disk ? Access::consume : Access::read, Value::master_parameters, op.block,
          kNoMicro);
  out.create(Value::parameters, op.block);
}
inline void reduce_gradient_effects(const Schedule& s, const Op& op, Effects& out) {
  out.gradient_of(s, op.block, s.slices() && !s.gradient_stays(op.block) ? Access::consume : Access::read);
  out.create(Value::reduced_gradient, op.block);
}
inline void all_reduce_totals_effects(const Schedule& s, const Op&, Effects& out) {
  compute_family::read_results(s, out);
  out.create(Value::totals);
}

inline Due sliced(const Schedule& s, BlockId b, MicroId) { return s.holds(b) && s.slices() ? Due::any : Due::never; }
inline Due gradient_is_summed(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.training && s.layout.sizes().reduces() ? Due::once : Due::never;
}
inline Due with_several_ranks(const Schedule& s, BlockId, MicroId) {
  return s.layout.sizes().ranks() > 1 && s.micros > 0 ? Due::once : Due::never;
}

// Bytes exchanged for parameters or their gradients. Experts are exchanged among fewer ranks. `each`: bytes by size and
// ranks.
template <class Each>
double among_replicas(const Schedule& s, BlockId b, const Each& each) {
  const Layout& layout = s.layout.sizes();
  const double experts = static_cast<double>(kFloatBytes) * static_cast<double>(s.blocks[b].expert_parameters);
  return each(whole_bytes(s, b) - experts, layout.replicas()) + each(experts, layout.expert_replicas());
}
// Each rank adds up its part of all gradients and, if they stay whole, writes the sum to all.
inline Cost reduce_gradient_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return exchange_cost(speeds, among_replicas(s, op.block, [&](double bytes, double ranks) {
                         if (ranks == 1) return 0.0;  // norms and biases over the tensor axis
                         return bytes * (s.slices() ? 1 + 1 / ranks : 2);
                       }));
}
inline Cost gather_parameters_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  return exchange_cost(speeds, among_replicas(s, op.block,
                                              [](double bytes, double ranks) { return 2 * bytes * (1 - 1 / ranks); }));
}

inline std::optional<Encounter> gather_meets(const RankSchedule& rank, const Op& op) {
  const int32_t stage = rank.schedule->layout.stage();
  return Encounter{{.kind = op.kind, .stage = stage, .tensor_rank = rank.tensor_rank, .block = op.block, .micro = op.micro},
                   {{gather_parameters, -1, stage, rank.tensor_rank}}};
}
// Parameters that all tensor ranks hold are summed over them too. Gather and reduce use one channel.
inline std::optional<Encounter> reduce_meets(const RankSchedule& rank, const Op& op) {
  const int32_t stage = rank.schedule->layout.stage();
  return Encounter{{.kind = op.kind, .stage = stage, .block = op.block, .micro = op.micro},
                   {{gather_parameters, -1, stage, rank.tensor_rank}, {reduce_gradient, -1, stage}}};
}
inline std::optional<Encounter> all_ranks_meet(const RankSchedule&, const Op& op) {
  return Encounter{{.kind = op.kind, .block = op.block, .micro = op.micro}, {{op.kind}}};
}

inline constexpr OpType kTypes[] = {
    {.kind = gather_parameters, .name = "gather parameters", .about = "parameters from the slices of other ranks",
     .colour = "#c2488f", .letter = 'G', .due = sliced, .effects = gather_parameters_effects,
     .cost = gather_parameters_cost, .meets = gather_meets},
    {.kind = reduce_gradient, .name = "reduce gradient", .about = "gradient summed over ranks", .colour = "#a3327a",
     .letter = 'r', .due = gradient_is_summed, .effects = reduce_gradient_effects, .cost = reduce_gradient_cost,
     .meets = reduce_meets},
    {.kind = all_reduce_totals, .name = "all-reduce totals", .about = "loss and norms summed over ranks",
     .colour = "#6b7280", .letter = 't', .scope = Scope::step, .due = with_several_ranks,
     .effects = all_reduce_totals_effects, .meets = all_ranks_meet},
};

}  // namespace ranks_family
}  // namespace megalith::ops

// Collective ops of the ranks that hold the same blocks, and of all ranks.
#pragma once
#include <algorithm>

#include "schedule/op_type.h"
#include "schedule/ops/common.h"

namespace megalith::ops {

inline constexpr OpKind gather_parameters{19};  // all-gather: whole parameters from the slices of all replicas
inline constexpr OpKind reduce_gradient{20};    // all-reduce, or reduce-scatter for a sliced block
inline constexpr OpKind all_reduce_totals{21};  // sums loss, targets, squares, stop flag and routing over all ranks

namespace ranks_family {

inline void reduce_gradient_effects(const Schedule& s, const Op& op, Effects& out) {
  out.gradient_of(s, op.block, s.slices() && !s.gradient_stays(op.block) ? Access::consume : Access::read);
  out.create(Value::reduced_gradient, op.block);
}
inline void all_reduce_totals_effects(const Schedule& s, const Op&, Effects& out) {
  read_results(s, out);
  out.create(Value::totals);
}

inline Due sliced(const Schedule& s, BlockId b, MicroId) { return s.holds(b) && s.slices() ? Due::any : Due::never; }
inline Due gradient_is_summed(const Schedule& s, BlockId b, MicroId) {
  return s.holds(b) && s.training && s.layout.sizes().reduces() ? Due::once : Due::never;
}
inline Due with_several_ranks(const Schedule& s, BlockId, MicroId) {
  return s.layout.sizes().ranks() > 1 && s.micros > 0 ? Due::once : Due::never;
}

// Exchanges of a block's parameters or gradient between replicas, as float32. There is one call for everything except
// experts, and one for the experts, which fewer ranks hold. In one `way` each rank sends its slice to all others; an
// all-reduce takes two ways.
inline ExchangeFacts between_replicas(const Schedule& s, BlockId b, int64_t ways) {
  const Layout& layout = s.layout.sizes();
  const int64_t experts = s.blocks[b].expert_parameters;
  ExchangeFacts sum;
  const auto add = [&](int64_t elements, int64_t ranks) {
    if (ranks == 1 || elements == 0) return;
    sum.calls++;
    sum.bytes += ways * kFloatBytes * elements / ranks * (ranks - 1);
  };
  add(s.blocks[b].parameters - experts, layout.replicas());
  add(experts, layout.expert_replicas());
  return sum;
}
inline Cost reduce_gradient_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  AxisExchanges exchanges;
  exchanges[Axis::data] = between_replicas(s, op.block, s.slices() ? 1 : 2);
  if (s.layout.sizes().tensor > 1) exchanges[Axis::tensor] = {1, 0};  // norms and biases: few bytes
  return exchange_cost(speeds, exchanges);
}
inline Cost gather_parameters_cost(const Schedule& s, const Op& op, const MachineSpeeds& speeds) {
  AxisExchanges exchanges;
  exchanges[Axis::data] = between_replicas(s, op.block, 1);
  return exchange_cost(speeds, exchanges);
}
// One small exchange between all ranks. It takes as long as a call along the slowest axis.
inline Cost all_reduce_totals_cost(const Schedule&, const Op&, const MachineSpeeds& speeds) {
  double latency_s = 0;
  for (const LinkSpeed& link : speeds.links) latency_s = std::max(latency_s, link.latency_s);
  return {.seconds = latency_s + speeds.op_overhead_s, .use = {}};
}

inline std::optional<Encounter> gather_meets(const RankSchedule& rank, const Op& op) {
  const int32_t stage = rank.schedule->layout.stage();
  return Encounter{{.kind = op.kind, .stage = stage, .tensor_rank = rank.tensor_rank, .block = op.block, .micro = op.micro},
                   {{gather_parameters, -1, stage, rank.tensor_rank}}};
}
// Gradients of parameters that all tensor ranks hold are summed over these ranks, too. Gather and reduce use one channel.
inline std::optional<Encounter> reduce_meets(const RankSchedule& rank, const Op& op) {
  const int32_t stage = rank.schedule->layout.stage();
  return Encounter{{.kind = op.kind, .stage = stage, .block = op.block, .micro = op.micro},
                   {{gather_parameters, -1, stage, rank.tensor_rank}, {reduce_gradient, -1, stage}}};
}
inline std::optional<Encounter> all_ranks_meet(const RankSchedule&, const Op& op) {
  return Encounter{{.kind = op.kind, .block = op.block, .micro = op.micro}, {{op.kind}}};
}

inline constexpr OpType kTypes[] = {
    {.kind = gather_parameters, .name = "gather parameters",
     .about = "collects parameters from the slices of other ranks",
     .colour = "#c2488f", .letter = 'G', .due = sliced, .effects = parameters_from_master,
     .cost = gather_parameters_cost, .meets = gather_meets},
    {.kind = reduce_gradient, .name = "reduce gradient", .about = "sums a gradient over ranks", .colour = "#a3327a",
     .letter = 'r', .due = gradient_is_summed, .effects = reduce_gradient_effects, .cost = reduce_gradient_cost,
     .meets = reduce_meets},
    {.kind = all_reduce_totals, .name = "all-reduce totals", .about = "sums loss and norms over all ranks",
     .colour = "#6b7280", .letter = 't', .scope = Scope::step, .due = with_several_ranks,
     .effects = all_reduce_totals_effects, .cost = all_reduce_totals_cost, .meets = all_ranks_meet},
};

}  // namespace ranks_family
}  // namespace megalith::ops

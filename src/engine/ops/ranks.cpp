#include "schedule/ops/ranks.h"

#include <algorithm>

#include "engine/op_handler.h"
#include "engine/replica_sync.h"

namespace megalith {
namespace {

void all_reduce_totals(StepState& step, const Op&) {
  ProcessGroups& groups = *step.groups;
  StepTotals totals = own_totals(step);
  if (!groups.counts_losses() || (step.input.same_for_all && !groups.mesh().first(Axis::data)))
    totals.loss = totals.targets = 0;
  // All ranks of the tensor and context axes have the same routing record: count it once.
  if (!groups.mesh().first(Axis::tensor) || !groups.mesh().first(Axis::context)) std::ranges::fill(totals.routing, 0);
  if (step.input.stop_requested && step.input.stop_requested()) totals.stops = 1;
  std::vector<double> sums{totals.loss, totals.targets, totals.squares, totals.stops};
  sums.insert(sums.end(), totals.routing.begin(), totals.routing.end());
  groups.everyone().all_reduce(std::span<double>(sums));
  step.totals = StepTotals{.loss = sums[0], .targets = sums[1], .squares = sums[2], .stops = sums[3],
                           .routing = {sums.begin() + 4, sums.end()}};
}

}  // namespace

std::span<const OpHandler> ranks_handlers() {
  static constexpr OpHandler all[] = {
      {ops::gather_parameters,
       [](StepState& step, const Op& op) { gather_parameters(step.model, op.block, step.groups->replicas()); }},
      {ops::reduce_gradient,
       [](StepState& step, const Op& op) {
         reduce_gradient(step.model, op.block, step.groups->replicas(), step.groups->tensor_gradients());
       }},
      {ops::all_reduce_totals, all_reduce_totals},
  };
  return all;
}

}  // namespace megalith

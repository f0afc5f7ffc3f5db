#include "schedule/ops/ranks.h"

#include "engine/op_handler.h"
#include "engine/replica_sync.h"

namespace megalith {
namespace {

void all_reduce_totals(StepState& step, const Op&) {
  ProcessGroups& groups = *step.groups;
  const bool counts = groups.counts_losses() && (!step.input.same_for_all || groups.mesh().first(Axis::data));
  // Loss, targets, squares of the gradient, number of ranks that were asked to stop.
  std::vector<double> sums{0, 0, 0, step.input.stop_requested && step.input.stop_requested() ? 1.0 : 0.0};
  for (const MicroState& micro : step.micros) {
    sums[0] += counts ? micro.sums.loss : 0;
    sums[1] += counts ? static_cast<double>(micro.sums.targets) : 0;
  }
  for (double s : step.squares) sums[2] += s;
  const size_t plain = sums.size();
  // Ranks that share sequences or the inside of blocks know the same about their routers.
  const bool routes = groups.mesh().first(Axis::tensor) && groups.mesh().first(Axis::context);
  for (double number : routing_numbers(step)) sums.push_back(routes ? number : 0);
  groups.everyone().all_reduce(std::span<double>(sums));
  step.outcome.routing =
      record_of({sums.begin() + static_cast<std::ptrdiff_t>(plain), sums.end()}, step.model.shape().experts.count);
  step.outcome.loss = sums[0];
  step.outcome.targets = static_cast<int64_t>(sums[1]);
  step.squares.assign(1, sums[2]);
  step.outcome.stop = sums[3] > 0;
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

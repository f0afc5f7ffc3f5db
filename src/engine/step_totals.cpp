#include "engine/step_totals.h"

#include "engine/step_state.h"

namespace megalith {

StepTotals own_totals(const StepState& step) {
  StepTotals totals;
  for (const MicroState& micro : step.micros) {
    totals.loss += micro.sums.loss;
    totals.targets += static_cast<double>(micro.sums.targets);
    const std::vector<double> routing = numbers_of(micro.routing, step.model.shape().experts.count);
    totals.routing.resize(routing.size(), 0);
    for (size_t i = 0; i < routing.size(); i++) totals.routing[i] += routing[i];
  }
  for (double squares : step.squares) totals.squares += squares;
  return totals;
}

StepTotals& totals_of(StepState& step) {
  if (!step.totals) step.totals = own_totals(step);
  return *step.totals;
}

void finish(StepState& step) {
  const StepTotals& totals = totals_of(step);
  StepOutcome& outcome = step.outcome;
  outcome.targets = static_cast<int64_t>(totals.targets);
  outcome.loss = totals.targets > 0 ? totals.loss / totals.targets : totals.loss;
  outcome.stop = totals.stops > 0;
  outcome.routing = record_of(totals.routing, step.model.shape().experts.count);
}

}  // namespace megalith

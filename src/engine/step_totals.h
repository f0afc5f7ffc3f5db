// What a step adds up over micro-batches, blocks and ranks: loss, targets, gradient norm, stop requests and routing.
#pragma once
#include <optional>
#include <vector>

namespace megalith {

struct StepState;

struct StepTotals {
  double loss = 0;     // sum over the targets, nats
  double targets = 0;
  double squares = 0;  // of all gradient elements, with the loss scale
  double stops = 0;    // ranks that were asked to stop
  std::vector<double> routing = {};  // see routing/record.h
};

// Of this rank, in the order of micro-batches and blocks. Does not ask for stop requests.
StepTotals own_totals(const StepState& step);
// Of all ranks. Several ranks have them from all_reduce_totals; one rank adds up its own at the first call.
StepTotals& totals_of(StepState& step);
// Loss, targets, stop flag and routing of the outcome.
void finish(StepState& step);

}  // namespace megalith

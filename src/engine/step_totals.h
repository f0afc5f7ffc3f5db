// Sums of a step over micro-batches, blocks and ranks: loss, targets, gradient norm, stop requests and routing.
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

// Returns the totals of this rank, added in the order of micro-batches and blocks, without stop requests.
StepTotals own_totals(const StepState& step);
// Returns the totals of all ranks. With several ranks, all_reduce_totals computes them; a single rank computes them at the
// first call.
StepTotals& totals_of(StepState& step);
// Sets loss, targets, stop flag and routing of the outcome.
void finish(StepState& step);

}  // namespace megalith

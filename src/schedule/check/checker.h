// Proves a schedule before it runs, or says what is wrong with it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "schedule/schedule.h"

namespace megalith {

struct Problem {
  OpId op = kNoOp;     // kNoOp: a problem of the whole step, such as a missing op
  std::string reason;  // one sentence that names the op
};

// Returns no problems if every legal interleaving of the lanes gives the same, complete step:
// - Each op of the step is there once and finds the values that it needs.
// - Gradients add up in micro-batch order.
// - No ops wait in a cycle.
// - If two ops access one value and one of them writes it, their order is defined.
// - No value is left over.
// - Memory stays within `budget` (host) and `device`, if they are given.
std::vector<Problem> check(const Schedule& schedule, std::optional<Bytes> budget = std::nullopt,
                           std::optional<Bytes> device = std::nullopt);

}  // namespace megalith

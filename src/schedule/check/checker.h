// Runs a schedule abstractly and says what is wrong with it, before anything is executed.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "schedule/schedule.h"

namespace megalith {

struct Problem {
  OpId op = kNoOp;     // kNoOp: of the whole step, such as an op that is missing
  std::string reason;  // one sentence that names the op
};

// Empty when every legal interleaving of the lanes gives the same, complete step: each op of the step is
// there once, finds what it needs, gradients add up in micro-batch order, nothing waits in a cycle, whatever
// two ops touch and one of them writes is ordered, nothing is left over, and memory stays within the budget
// if there is one.
std::vector<Problem> check(const Schedule& schedule, std::optional<Bytes> budget = std::nullopt,
                           std::optional<Bytes> device = std::nullopt);

}  // namespace megalith

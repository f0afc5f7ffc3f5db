// Refuses sizes that cannot be planned before any list is built. The lists would be too long, or sums would overflow.
#pragma once
#include "planner/plan_input.h"

namespace megalith {

// Throws UserError if the model has too many parameter tensors, if the step has too many ops, or if a sum of bytes could
// overflow. Also throws it if memory and disk together cannot hold the model. `budget`: bytes of memory for one rank.
void check_plan_size(const PlanInput& input, int64_t budget);

}  // namespace megalith

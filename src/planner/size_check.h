// Sizes that cannot be planned are refused before any list is built: their lists or sums would have no end.
#pragma once
#include "planner/plan_input.h"

namespace megalith {

// UserError if the model has more parameters, the step more ops, or a sum of bytes more digits than a plan can count; also if
// memory and disk together cannot hold the model. `budget`: bytes of memory that a rank may take.
void check_plan_size(const PlanInput& input, int64_t budget);

}  // namespace megalith

// Predicts the cost of every op of a schedule from the facts of its blocks and the speeds of the machine.
#pragma once
#include <vector>

#include "schedule/cost_model.h"
#include "schedule/schedule.h"

namespace megalith {

// Returns one cost per op. Reads and writes share one disk. A lane other than compute keeps at most one core busy.
std::vector<Cost> predict_costs(const Schedule& schedule, const MachineSpeeds& speeds);

}  // namespace megalith

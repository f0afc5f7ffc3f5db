// Plans as JSON, for reports and plan.json.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "planner/plan.h"

namespace megalith {

nlohmann::json to_json(const Plan& plan, const PlanInput& input);  // plan.json

// Bytes by the kinds that reports show.
nlohmann::json memory_by_kind(const MemoryUse& use, Bytes process);

}  // namespace megalith

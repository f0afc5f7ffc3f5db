// A step's routing in a few numbers.
#pragma once
#include <optional>

#include "model/routing/record.h"
#include "report/metrics.h"

namespace megalith {

// Nothing where no layer has experts.
std::optional<ExpertMetrics> expert_metrics(const RoutingRecord& record);

}  // namespace megalith

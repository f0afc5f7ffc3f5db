#include "schedule/predict/costs.h"

#include "base/error.h"
#include "schedule/op_type.h"

namespace megalith {

std::vector<Cost> predict_costs(const Schedule& schedule, const MachineSpeeds& speeds) {
  MEGALITH_ASSERT(speeds.flops > 0 && speeds.memory_bandwidth > 0 && speeds.cores >= 1);
  std::vector<Cost> costs;
  costs.reserve(schedule.ops.size());
  for (const Op& op : schedule.ops) costs.push_back(type_of(op.kind).cost(schedule, op, speeds));
  return costs;
}

}  // namespace megalith

// Memory over the time of a step: what a picture of it shows below the lanes.
#pragma once
#include <span>
#include <vector>

#include "schedule/predict/memory.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

struct MemoryPoint {
  double seconds = 0;  // from then on, until the next point
  MemoryUse use;
};

// In time order, the first at 0. `spans` by op, predicted or measured; ops that did not run count for nothing. What
// ends at a moment makes room for what begins then, as in the simulator, whose peak is the highest point.
std::vector<MemoryPoint> memory_over_time(const Schedule& schedule, std::span<const Span> spans);

}  // namespace megalith

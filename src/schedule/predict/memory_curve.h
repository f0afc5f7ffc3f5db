// Memory over the time of a step. Pictures of a step show it below the lanes.
#pragma once
#include <span>
#include <vector>

#include "schedule/predict/memory.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

struct MemoryPoint {
  double seconds = 0;  // `use` holds from this time until the next point
  MemoryUse use;
};

// Returns points in time order; the first one is at 0. `spans` has one entry per op, predicted or measured. Ops that did
// not run are ignored. If one op ends and another begins at the same moment, the ending op frees its memory first, as in
// the simulator. So the highest point is the simulator's peak.
std::vector<MemoryPoint> memory_over_time(const Schedule& schedule, std::span<const Span> spans);

}  // namespace megalith

// The executor with durations in place of work: same lanes, same rules, shared resources.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/costs.h"
#include "schedule/memory.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

struct Simulation {
  double seconds = 0;                        // of the step
  std::vector<Span> spans;                   // by op
  std::array<double, kLanes> busy{};         // seconds a lane was at work
  std::vector<Stall> stalls;                 // longest first
  std::array<double, kResources> slowed{};   // seconds that ops lost because others used the same resource
  int64_t peak_bytes = 0;
  MemoryUse at_peak;                         // by kind; sums to peak_bytes
  OpId peak_op = kNoOp;                      // whose start led there; kNoOp: what is resident is the peak
};

// Ops that run at the same time share a resource in proportion to what they would use of it alone. `costs`
// has one entry an op. The schedule must be one that the checker accepts.
Simulation simulate(const Schedule& schedule, std::span<const Cost> costs);

}  // namespace megalith

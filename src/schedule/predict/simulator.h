// The executor with durations in place of work: same lanes, same rules, shared resources; of one rank or of several
// that meet.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/predict/costs.h"
#include "schedule/rendezvous.h"
#include "schedule/predict/memory.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

struct Simulation {
  double seconds = 0;                        // of the step
  std::vector<Span> spans;                   // by op; an exchange begins when its rank has come
  std::array<double, kLanes> busy{};         // seconds a lane was at work, without its waits for other ranks
  std::vector<Stall> stalls;                 // longest first
  std::array<double, kResources> slowed{};   // seconds that ops lost because others used the same resource
  double waited_for_ranks = 0;               // seconds in which nothing was computed and another rank had not come yet
  int64_t peak_bytes = 0;
  MemoryUse at_peak;                         // by kind; sums to peak_bytes
  OpId peak_op = kNoOp;                      // whose start led there; kNoOp: what is resident is the peak
  MemoryUse on_device;                       // at the device's own peak, by kind
};

// Ops that run at the same time share a resource in proportion to what they would use of it alone. `costs`
// has one entry an op. The schedule must be one that the checker accepts. Other ranks are there when they are needed.
Simulation simulate(const Schedule& schedule, std::span<const Cost> costs);

// The same for ranks that meet each other: an exchange goes on when all of `ranks` that take part in it have come, and
// takes as long as the one that needs longest. The ranks of a host share its memory and disk; each has its own cores and
// network. One result a rank, in one clock.
std::vector<Simulation> simulate_ranks(std::span<const RankSchedule> ranks, std::span<const std::vector<Cost>> costs);

}  // namespace megalith

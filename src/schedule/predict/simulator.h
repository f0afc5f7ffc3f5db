// Runs schedules with predicted durations in place of work. It uses the same lanes and rules as the executor, and models
// shared resources. It simulates one rank, or several ranks that exchange data.
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
  double seconds = 0;                        // duration of the step
  std::vector<Span> spans;                   // by op; an exchange begins when this rank has reached it
  std::array<double, kLanes> busy{};         // seconds that a lane worked, without its waits for other ranks
  std::vector<Stall> stalls;                 // longest first
  std::array<double, kResources> slowed{};   // seconds that ops lost because others used the same resource
  double waited_for_ranks = 0;               // seconds without computing while an exchange waited for another rank
  int64_t peak_bytes = 0;
  MemoryUse at_peak;                         // by kind; sums to peak_bytes
  OpId peak_op = kNoOp;                      // the op whose start led to the peak; kNoOp if the peak is resident()
  MemoryUse on_device;                       // at the device's own peak, by kind
};

// Ops that run at the same time share a resource in proportion to what each would use alone. `costs` has one entry per op.
// The checker must accept the schedule. Exchanges never wait for other ranks.
Simulation simulate(const Schedule& schedule, std::span<const Cost> costs);

// The same for several ranks. An exchange starts when all of `ranks` that take part have reached it. It takes as long as
// the rank that needs the longest time. The ranks of a host share its memory and disk. Each has its own cores and network.
// Returns one result per rank, all on one clock.
std::vector<Simulation> simulate_ranks(std::span<const RankSchedule> ranks, std::span<const std::vector<Cost>> costs);

}  // namespace megalith

// The times at which the ops of a schedule ran. The simulator's predictions and the lanes' measurements have the same form.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// Seconds since the step began. `end` is below 0 if the op did not finish.
struct Span {
  double start = -1;
  double end = -1;
  bool ran() const { return end >= 0; }
};

// Time in which a lane was free but its next op waited. The last op that it waited for was of the kind `waited_for`.
struct Stall {
  Lane lane = Lane::compute;
  OpKind waited_for{};
  double seconds = 0;
};

// In all functions below, `spans` is indexed by OpId.
double step_seconds(std::span<const Span> spans);
std::array<double, kLanes> busy_seconds(const Schedule& schedule, std::span<const Span> spans);
std::vector<Stall> stalls(const Schedule& schedule, std::span<const Span> spans);  // longest first

}  // namespace megalith

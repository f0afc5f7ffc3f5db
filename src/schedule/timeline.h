// When each op of a schedule ran: what the simulator predicts and what the lanes measure, in one form.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

// Seconds since the step began; end < 0 for an op that did not run to its end.
struct Span {
  double start = -1;
  double end = -1;
  bool ran() const { return end >= 0; }
};

// A lane was free and its next op waited, in the end, for an op of this kind.
struct Stall {
  Lane lane = Lane::compute;
  OpKind waited_for{};
  double seconds = 0;
};

// `spans` is indexed by OpId in all of these.
double step_seconds(std::span<const Span> spans);
std::array<double, kLanes> busy_seconds(const Schedule& schedule, std::span<const Span> spans);
std::vector<Stall> stalls(const Schedule& schedule, std::span<const Span> spans);  // longest first

}  // namespace megalith

#include "schedule/timeline.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {

double step_seconds(std::span<const Span> spans) {
  double end = 0;
  for (const Span& span : spans) end = std::max(end, span.end);
  return end;
}

std::array<double, kLanes> busy_seconds(const Schedule& schedule, std::span<const Span> spans) {
  MEGALITH_ASSERT(spans.size() == schedule.ops.size());
  std::array<double, kLanes> busy{};
  for (size_t op = 0; op < spans.size(); op++) {
    if (spans[op].ran()) busy[static_cast<size_t>(schedule.ops[op].lane)] += spans[op].end - spans[op].start;
  }
  return busy;
}

std::vector<Stall> stalls(const Schedule& schedule, std::span<const Span> spans) {
  MEGALITH_ASSERT(spans.size() == schedule.ops.size());
  std::vector<Stall> found;
  std::array<double, kLanes> free_since{};
  for (size_t op = 0; op < spans.size(); op++) {
    if (!spans[op].ran()) continue;
    const Op& it = schedule.ops[op];
    double& free = free_since[static_cast<size_t>(it.lane)];
    OpId last = kNoOp;  // the last op that it waited for
    for (OpId after : it.after) {
      if (spans[after].end > free && (last == kNoOp || spans[after].end > spans[last].end)) last = after;
    }
    if (last != kNoOp) {
      const OpKind kind = schedule.ops[last].kind;
      auto same = std::find_if(found.begin(), found.end(),
                               [&](const Stall& s) { return s.lane == it.lane && s.waited_for == kind; });
      if (same == found.end()) same = found.insert(found.end(), Stall{it.lane, kind, 0});
      same->seconds += spans[last].end - free;
    }
    free = spans[op].end;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Stall& a, const Stall& b) { return a.seconds > b.seconds; });
  return found;
}

}  // namespace megalith

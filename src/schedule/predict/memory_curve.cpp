#include "schedule/predict/memory_curve.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace megalith {

std::vector<MemoryPoint> memory_over_time(const Schedule& schedule, std::span<const Span> spans) {
  MEGALITH_ASSERT(spans.size() == schedule.ops.size());
  enum Phase { ends, begins, ends_at_once };  // the order of events at one moment; an op of no length ends after it began
  struct Event {
    double seconds;
    Phase phase;
    OpId op;
    bool operator<(const Event& o) const { return std::tie(seconds, phase, op) < std::tie(o.seconds, o.phase, o.op); }
  };
  std::vector<Event> events;
  for (OpId op = 0; op < static_cast<OpId>(spans.size()); op++) {
    if (!spans[op].ran()) continue;
    events.push_back({spans[op].start, begins, op});
    events.push_back({spans[op].end, spans[op].end > spans[op].start ? ends : ends_at_once, op});
  }
  std::sort(events.begin(), events.end());
  MemoryLedger ledger(schedule);
  std::vector<MemoryPoint> points{{0, ledger.now()}};
  for (const Event& event : events) {
    if (event.phase == begins) ledger.start(event.op);
    else ledger.finish(event.op);
    if (event.seconds > points.back().seconds) points.push_back({event.seconds, {}});
    points.back().use = ledger.now();
  }
  return points;
}

}  // namespace megalith

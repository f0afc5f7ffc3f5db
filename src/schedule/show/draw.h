// Draws a step for the terminal and for Perfetto.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

// Draws one row per lane that has ops and one letter per op kind, then a scale and a legend. `columns` is the total width,
// at least 40.
std::string draw_timeline(const Schedule& schedule, std::span<const Span> spans, int columns = 100);

// A step as one process of a trace. Processes (such as predicted and measured) are drawn below each other. Steps with the
// same title belong to one process. The pointer and the span are borrowed.
struct TraceProcess {
  std::string title;
  const Schedule* schedule = nullptr;
  std::span<const Span> spans;  // by op
  double start = 0;             // seconds to add, for several steps in one trace
};

// Chrome's trace event format (JSON object form), which Perfetto opens. Processes are numbered from 1.
std::string trace_json(const std::vector<TraceProcess>& processes);

}  // namespace megalith

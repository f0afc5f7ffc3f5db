// Pictures of a step: for the terminal and for Perfetto.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

// One row a lane that has ops, one letter an op kind, then a scale and a legend. `columns` >= 40 is the width
// of all.
std::string draw_timeline(const Schedule& schedule, std::span<const Span> spans, int columns = 100);

// A step as one process of a trace; several (predicted, measured) stand below one another, and those with the
// same title are one. Borrows.
struct TraceProcess {
  std::string title;
  const Schedule* schedule = nullptr;
  std::span<const Span> spans;  // by op
  double start = 0;             // seconds to add, for several steps in one trace
};

// Chrome's trace event format (JSON object form), which Perfetto opens. Processes are numbered from 1.
std::string trace_json(const std::vector<TraceProcess>& processes);

}  // namespace megalith

// Draws a step as an SVG picture: lanes above, memory below, with one time scale.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

struct StepPicture {
  std::string title, subtitle;
  const Schedule* schedule = nullptr;  // borrowed
  std::span<const Span> spans;         // by op
  int64_t process_bytes = 0;           // memory that the schedule does not count: the bottom of the memory chart
  int64_t budget_bytes = 0;            // drawn as a line if it is below three times the peak
};

// Draws lanes as rows, ops coloured by kind, a legend, and memory by kind over the step with the budget. Names of blocks
// are shown if they fit: above the compute lane, and inside the ops of other lanes. The tooltip of an op has its full name.
std::string draw_svg(const StepPicture& picture);

}  // namespace megalith

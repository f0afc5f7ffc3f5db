// A step as a picture in a file of its own: lanes above, memory below, one scale of time.
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
  int64_t process_bytes = 0;           // beside what the schedule counts: the bottom of the memory chart
  int64_t budget_bytes = 0;            // drawn as a line where it is near
};

// Lanes as rows, ops coloured by kind with a legend, memory over the step by kind with the budget. Blocks
// are named where there is room: above the compute lane, inside the ops of others; pointing at an op names it in full.
std::string draw_svg(const StepPicture& picture);

}  // namespace megalith

// Pictures, timelines and traces of steps.
#include <fmt/format.h>

#include "recording/dump.h"
#include "schedule/show/draw.h"
#include "schedule/show/draw_svg.h"
#include "schedule/random_schedules.h"
#include "schedule/predict/simulator.h"
#include "schedule/toy_speeds.h"

namespace megalith::recording {

void dump_drawings() {
  Random random(5);
  for (int i = 0; i < 40; i++) {
    const Schedule schedule = random_schedule(random);
    const Simulation step = simulate(schedule, predict_costs(schedule, kToySpeeds));
    fmt::print("== random {}\n{}\n", i, draw_timeline(schedule, step.spans, 100));
    fmt::print("{}\n", draw_svg({"title", "subtitle", &schedule, step.spans, 1000, 50000}));
    fmt::print("{}\n", trace_json({{"predicted", &schedule, step.spans}}));
  }
}

}  // namespace megalith::recording

// Lines that commands print about a run before it starts.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "planner/shape_forecast.h"
#include "run/run.h"

namespace megalith {

std::string model_line(const Run& run);
std::string step_line(const PlanInput& input, int64_t micro_batch);
std::string lines(const std::vector<std::string>& notes);
// Describes steps whose shape changes during the run. Returns an empty text if all steps have the same shape.
std::string shape_lines(std::span<const ShapeForecast> shapes, bool with_seconds);

}  // namespace megalith

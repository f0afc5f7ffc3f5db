// Predicts the time and memory of steps while a curriculum or token dropping changes their shape.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "data/step_shapes.h"
#include "planner/plan.h"

namespace megalith {

struct ShapeForecast {
  int64_t first_step = 0;  // from 0
  StepShape shape;
  double seconds = 0;      // per step
  Bytes peak;              // of the whole process
};

// Returns forecasts for the first and last shape of a run of `steps` steps, and for up to four shapes between them, in
// order. Empty if all steps have the shape of the plan.
std::vector<ShapeForecast> forecast_shapes(const PlanInput& input, const Plan& plan, const StepShapes& shapes,
                                           int64_t steps);

std::string show(std::span<const ShapeForecast> shapes, bool with_seconds);  // rows for people; empty if `shapes` is empty
nlohmann::json to_json(std::span<const ShapeForecast> shapes);

}  // namespace megalith

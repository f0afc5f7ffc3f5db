// What the planner takes, from a test's settings: their shape is complete.
#pragma once
#include "config/resolve_layout.h"
#include "planner/plan_input.h"

namespace megalith {

inline PlanInput input_of(const Config& config) {
  const ModelShape& shape = config.model.shape;
  return plan_input(config, shape, layout_of(config), StepShapes(config, shape.layers));
}

}  // namespace megalith

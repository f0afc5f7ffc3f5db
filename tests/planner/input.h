// Makes the input of the planner from a test's settings, whose shape is complete.
#pragma once
#include "config/resolve_layout.h"
#include "planner/plan_input.h"
#include "planner/process.h"

namespace megalith {

inline PlanInput input_of(const Config& config) {
  const ModelShape& shape = config.model.shape;
  PlanInput input = plan_input(config, shape, layout_of(config), StepShapes(config, shape.layers));
  input.process = measured_process() + product_buffers(input);
  return input;
}

}  // namespace megalith

#include "planner/plan_input.h"

#include <limits>

namespace megalith {

PlanInput PlanInput::for_shape(const StepShape& step) const {
  PlanInput input = *this;
  input.batch = step.sequences();
  input.sequence = step.length;
  input.shapes = {{.samples = step.sequences(), .length = step.length, .pace = step.kept()}};
  if (step.kept() == 0) input.dropping_layers.clear();
  return input;
}

PlanInput plan_input(const Config& config, const ModelShape& shape, const Layout& layout, const StepShapes& shapes) {
  PlanInput input{.shape = shape,
                  .layout = layout,
                  .batch = config.step_sequences(),
                  .sequence = config.data.sequence,
                  .micro_batch = config.train.micro_batch,
                  .threads = config.train.threads,
                  .objective = config.objective,
                  .precision = config.train.precision,
                  .activations = config.train.activations,
                  .optimizer_state = config.train.optimizer_state,
                  .optimizer = config.train.optimizer,
                  .momentum = config.train.momentum,
                  .memory = config.memory,
                  .disk = config.run.dir};
  for (const auto& [_, step] : shapes.changes(std::numeric_limits<int64_t>::max())) input.shapes.push_back(step);
  if (config.token_dropping.on()) input.dropping_layers = config.token_dropping.layers_of(shape.layers);
  return input;
}

}  // namespace megalith

#include "train/step.h"

#include "schedule/base_pass.h"

namespace megalith {

StepOutcome train_step(Engine& engine, ShapePlans& plans, const Dataset& data, const TrainSettings& settings, int64_t step,
                       double lr, PartSink* save) {
  const Batch batch = data.train_batch(step, settings.batch);
  const Plan& plan = plans.at(data.shape(step, settings.batch));
  const Schedule& schedule = save ? plan.step_with_save : plan.step;
  return engine.run(schedule, {&batch, step, lr, save});
}

double validate(Engine& engine, const Plan& plan, const Dataset& data, int64_t batches) {
  const Schedule schedule = evaluation_step(plan.blocks, 1);
  const int64_t sequences = data.valid_sequences(), each = plan.micro_batch;
  // `batches` counts batches of a training step's size.
  const int64_t most = batches > 0 ? std::min(sequences, batches * each * plan.micros) : sequences;
  double sum = 0;
  int64_t targets = 0;
  for (int64_t i = 0; i * each < most; i++) {
    const Batch batch = data.valid_batch(i, each);
    const StepOutcome outcome = engine.run(schedule, {&batch, 0, 0, nullptr});
    sum += outcome.loss * static_cast<double>(outcome.targets);
    targets += outcome.targets;
  }
  return targets > 0 ? sum / static_cast<double>(targets) : 0;
}

}  // namespace megalith

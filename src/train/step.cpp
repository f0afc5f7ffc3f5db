// The phases of a step are ops. These files write them:
// forward, backward and norms: schedule/passes/training_step.cpp
// totals, clipping and the optimizer step: StepWriter::finish in schedule/passes/step_writer.cpp
// the checkpoint: schedule/passes/save.cpp
#include "train/step.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace megalith {

StepOutcome train_step(Engine& engine, ShapePlans& plans, const Dataset& data, int64_t sequences, StepInput input) {
  const Batch batch = data.train_batch(input.step, sequences);
  const Plan& plan = plans.at(data.shape(input.step, sequences));
  const Schedule& schedule = input.sink ? plan.step_with_save : plan.step;
  input.batch = &batch;
  return engine.run(schedule, input);
}

Validation validate(Engine& engine, const Plan& plan, const Dataset& data, const ValidationScope& scope) {
  const int64_t sequences = data.valid_sequences(), one = plan.micro_batch, together = one * plan.micros * scope.data_ranks;
  const int64_t most = scope.batches > 0 ? std::min(sequences, scope.batches * together) : sequences;
  double sum = 0;
  int64_t targets = 0, bytes = 0;
  bool compared = false;
  const auto add = [&](const Schedule& schedule, const Batch& batch, bool same_for_all) {
    const StepOutcome outcome = engine.run(schedule, {.batch = &batch, .same_for_all = same_for_all});
    compared = batch.comparison.any();
    sum += outcome.loss * static_cast<double>(outcome.targets);
    targets += outcome.targets;
    for (const int64_t target : batch.targets)
      if (target >= 0 && target < std::ssize(scope.token_bytes)) bytes += scope.token_bytes[static_cast<size_t>(target)];
  };
  // First run the same number of micro-batches at once as a step does, so that a block from disk is used for all of them.
  // Then run the remaining ones one by one.
  const int64_t whole = most / together;
  for (int64_t i = 0; i < whole; i++) add(plan.evaluation, data.valid_batch(i, together), false);
  for (int64_t i = whole * together / one; i * one < most; i++) add(plan.evaluation_of_one, data.valid_batch(i, one), true);
  Validation result;
  if (targets > 0) result.loss = sum / static_cast<double>(targets);
  if (!compared) result.perplexity = std::exp(result.loss);
  if (bytes > 0) result.bits_per_byte = sum / std::numbers::ln2 / static_cast<double>(bytes);
  return result;
}

}  // namespace megalith

// One training step.
#pragma once
#include "data/dataset.h"
#include "engine/engine.h"
#include "planner/plan.h"
#include "planner/shape_plans.h"

namespace megalith {

// `step` counts from 0. `save`, where given, receives the state left by the step before while this one computes.
StepOutcome train_step(Engine& engine, ShapePlans& plans, const Dataset& data, const TrainSettings& settings, int64_t step,
                       double lr, CheckpointSink* save, const std::function<bool()>& stop_requested);

// Mean loss over the held-out sequences, at most `batches` batches of them (0: all).
double validate(Engine& engine, const Plan& plan, const Dataset& data, int64_t batches, int64_t data_ranks = 1);

}  // namespace megalith

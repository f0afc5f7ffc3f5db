// One training step.
#pragma once
#include "data/dataset.h"
#include "engine/engine.h"
#include "planner/plan.h"
#include "planner/shape_plans.h"

namespace megalith {

// Runs step `input.step` (from 0) on its batch of `sequences`, of all ranks. `input` has everything but the batch.
StepOutcome train_step(Engine& engine, ShapePlans& plans, const Dataset& data, int64_t sequences, StepInput input);

// Mean loss over the held-out sequences, at most `batches` batches of them (0: all).
double validate(Engine& engine, const Plan& plan, const Dataset& data, int64_t batches, int64_t data_ranks = 1);

}  // namespace megalith

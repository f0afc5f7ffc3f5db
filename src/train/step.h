// One training step.
#pragma once
#include <span>

#include "data/dataset.h"
#include "engine/engine.h"
#include "planner/plan.h"
#include "planner/shape_plans.h"

namespace megalith {

// Runs step `input.step` (from 0) on its batch: `sequences` sequences over all ranks.
// `input` has everything except the batch.
StepOutcome train_step(Engine& engine, ShapePlans& plans, const Dataset& data, int64_t sequences, StepInput input);

struct Validation {
  double loss = 0;           // mean over the targets
  double perplexity = 0;     // 0 if sequences were compared
  double bits_per_byte = 0;  // of the text behind the targets; 0 if unknown
};
struct ValidationScope {
  int64_t batches = 0;  // maximum number of batches; 0: all held-out sequences
  int64_t data_ranks = 1;
  std::span<const int32_t> token_bytes = {};  // by id (text/token_bytes.h); empty if unknown
};
Validation validate(Engine& engine, const Plan& plan, const Dataset& data, const ValidationScope& scope = {});

}  // namespace megalith

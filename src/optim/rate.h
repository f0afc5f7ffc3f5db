// The learning rate as a function of the step: nothing to save, nothing to restore.
#pragma once
#include <cstdint>

#include "config/config.h"

namespace megalith {

// `step` counts from 0, in steps of full batches; where a curriculum makes batches smaller and train.schedule_by
// counts tokens, it lies between whole numbers. Warm-up is linear and reaches lr at step warmup - 1 (step 0 without
// warm-up). After it:
//   cosine, linear  from lr to min_lr, reached at the last step and kept after it
//   wsd             lr, until the last decay_steps steps go from there to min_lr as linear does; min_lr after them
//   inverse_sqrt    lr * sqrt(warmup / (step + 1)), with warmup at least 1
//   constant        lr
double learning_rate(const TrainSettings& settings, double step);

}  // namespace megalith

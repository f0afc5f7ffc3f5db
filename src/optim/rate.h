// The learning rate as a function of the step. It has no state, so checkpoints do not save it.
#pragma once
#include <cstdint>

#include "config/config.h"

namespace megalith {

// `step` counts from 0, in steps of full batches. If a curriculum makes batches smaller and train.schedule_by counts tokens,
// `step` can be a fraction. Warm-up is linear and reaches lr at step warmup - 1 (at step 0 without warm-up). After it:
//   cosine, linear  from lr to min_lr, which the last step reaches; min_lr after it
//   wsd             lr; in the last decay_steps steps linear from lr to min_lr; min_lr after them
//   inverse_sqrt    lr * sqrt(warmup / (step + 1)), with warmup at least 1
//   constant        lr
double learning_rate(const TrainSettings& settings, double step);

}  // namespace megalith

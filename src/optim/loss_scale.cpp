#include "optim/loss_scale.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace megalith {

LossScale::LossScale(State state) : state_(state) {
  const bool plausible =
      state.scale > 0 && state.scale <= kLargest && state.good_steps >= 0 && state.good_steps < kGrowAfter;
  if (!plausible)
    throw UserError({.where = "state.json",
                     .key = "loss scale",
                     .expected = fmt::format("a scale in (0, {}] and a number of good steps below {}", kLargest, kGrowAfter),
                     .got = fmt::format("{} and {}", state.scale, state.good_steps),
                     .hint = "the checkpoint is damaged: delete it to resume from the previous one"});
}

void LossScale::after_step(bool good) {
  if (!good) {
    state_ = {state_.scale / 2, 0};
  } else if (++state_.good_steps == kGrowAfter) {
    state_ = {std::min(kLargest, state_.scale * 2), 0};
  }
}

}  // namespace megalith

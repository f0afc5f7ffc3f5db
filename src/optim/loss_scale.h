// Dynamic loss scaling for fp16. The loss is multiplied by a power of two, so that small gradients do not vanish. The factor
// is as large as possible without overflow.
#pragma once
#include <cstdint>

#include "base/number_formats.h"

namespace megalith {

class LossScale {
 public:
  // The complete state, as saved in a checkpoint.
  struct State {
    double scale = 65536;
    int64_t good_steps = 0;  // consecutive good steps since the last change of the scale
    // Only fp16 needs a scale; in other precisions it is 1.
    static State initial(Precision precision) { return precision == Precision::fp16 ? State{} : State{.scale = 1}; }
    bool operator==(const State&) const = default;
  };
  static constexpr int64_t kGrowAfter = 2000;   // good steps
  static constexpr double kLargest = 16777216;  // 2^24

  LossScale() = default;
  explicit LossScale(State state);  // throws UserError if state() cannot have returned these numbers

  double scale() const { return state_.scale; }
  State state() const { return state_; }
  // Call once per step. `good` means that all gradients were finite. Otherwise the step was skipped; the scale is halved.
  void after_step(bool good);

 private:
  State state_;
};

}  // namespace megalith

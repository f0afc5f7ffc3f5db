// Dynamic loss scaling for fp16: the loss is multiplied by a power of two so that small gradients do not
// vanish; the factor is as large as does not overflow.
#pragma once
#include <cstdint>

#include "base/number_formats.h"

namespace megalith {

class LossScale {
 public:
  // All that is saved in a checkpoint.
  struct State {
    double scale = 65536;
    int64_t good_steps = 0;  // in a row, since the scale last changed
    // Only fp16 needs a scale; in the other precisions it is 1.
    static State initial(Precision precision) { return precision == Precision::fp16 ? State{} : State{.scale = 1}; }
    bool operator==(const State&) const = default;
  };
  static constexpr int64_t kGrowAfter = 2000;   // good steps
  static constexpr double kLargest = 16777216;  // 2^24

  LossScale() = default;
  explicit LossScale(State state);  // a UserError where the numbers cannot have come from state()

  double scale() const { return state_.scale; }
  State state() const { return state_; }
  // Call once a step. Good: every gradient was finite. Otherwise the step was skipped and the scale is
  // halved.
  void after_step(bool good);

 private:
  State state_;
};

}  // namespace megalith

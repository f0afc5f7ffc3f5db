// The order of training samples while a curriculum admits more and more of them. Every draw takes a sample that this
// epoch has not drawn yet, each with the same probability. Newly admitted samples join the epoch. When all are drawn,
// the next epoch begins with all admitted samples.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "data/order.h"

namespace megalith {

class AdmittedOrder {
 public:
  // admitted_at[i]: the first step at which sample i may be drawn; at least one must be 0. `draws_before(step)`: the
  // number of draws in all earlier steps. `set` distinguishes blended data sets.
  AdmittedOrder(std::vector<int64_t> admitted_at, std::function<int64_t(int64_t)> draws_before, uint64_t seed,
                uint64_t set = 0);

  // Returns the draws of a step. They depend only on the step and the constructor's arguments, not on earlier calls. A call
  // for the step after the previous call's step costs only the draws of that step. A call for any other step also counts
  // over all earlier steps, and repeats the draws of its epoch. Thread-safe.
  std::vector<EpochSample> draw(int64_t step) const;

  // 16 digits that identify at which step each sample is admitted.
  const std::string& fingerprint() const { return fingerprint_; }

  int64_t samples() const { return static_cast<int64_t>(order_.size()); }
  int64_t admitted(int64_t step) const;  // number of samples admitted at a step
  // Returns how often the first `steps` steps pass over the admitted samples: completed passes, plus the fraction of the
  // current one. Thread-safe. Counts the steps since the previous call.
  double passes(int64_t steps) const;

 private:
  struct Place {                   // a position in the sequence of all draws
    int64_t step = 0, draw = 0;    // step and number of the next draw; draws are counted over all steps
    int64_t epoch = 0;
  };
  struct Level {
    int64_t step, count;           // `count` samples are admitted from this step on
  };
  Place epoch_begin(int64_t step) const;  // call these with mutex_ held
  void seek(int64_t step) const;
  std::vector<EpochSample> advance() const;
  EpochSample take() const;

  std::vector<int64_t> order_;     // samples, in the order of their admission
  std::vector<Level> levels_;
  std::function<int64_t(int64_t)> draws_before_;
  uint64_t seed_, set_;
  std::string fingerprint_;
  mutable std::mutex mutex_;
  mutable Place now_;
  mutable Place counted_;              // beginning of the epoch of step counted_to_
  mutable int64_t counted_to_ = 0;
  mutable std::vector<int64_t> pool_;  // all admitted samples: first those drawn in this epoch, then the others
  mutable size_t taken_ = 0;           // number of samples drawn from the pool in this epoch
};

}  // namespace megalith

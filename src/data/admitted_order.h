// Which of the samples that a curriculum admits so far is drawn when. Every draw takes one of those not yet drawn in
// this epoch, each equally likely; newly admitted samples join them; when none is left the next epoch begins with all
// that are admitted.
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
  // admitted_at[i]: the first step at which sample i may be drawn; at least one must be 0. `draws_before(step)`: how
  // many draws the steps before one make. `set` tells blended data sets apart.
  AdmittedOrder(std::vector<int64_t> admitted_at, std::function<int64_t(int64_t)> draws_before, uint64_t seed,
                uint64_t set = 0);

  // The draws of a step: a function of it and of what the order was made with, whatever was asked for before. Going on
  // from the step before costs no more than its draws; any other step costs a count of all steps before it and the
  // draws of its epoch. Thread-safe.
  std::vector<EpochSample> draw(int64_t step) const;

  // What is admitted when, in 16 digits: an order with another is another.
  const std::string& fingerprint() const { return fingerprint_; }

  int64_t samples() const { return static_cast<int64_t>(order_.size()); }
  int64_t admitted(int64_t step) const;  // how many
  // Passes that the first `steps` steps make over what is admitted: those that are done, and the share of the one that is
  // not. Thread-safe; any number of steps costs a count of those since the last that was asked for.
  double passes(int64_t steps) const;

 private:
  struct Place {                   // in the sequence of all draws
    int64_t step = 0, draw = 0;    // the next one's, counted through all steps
    int64_t epoch = 0;
  };
  struct Level {
    int64_t step, count;           // so many are admitted from this step on
  };
  Place epoch_begin(int64_t step) const;  // these with mutex_ held
  void seek(int64_t step) const;
  std::vector<EpochSample> advance() const;
  EpochSample take() const;

  std::vector<int64_t> order_;     // samples, those admitted first at the front
  std::vector<Level> levels_;
  std::function<int64_t(int64_t)> draws_before_;
  uint64_t seed_, set_;
  std::string fingerprint_;
  mutable std::mutex mutex_;
  mutable Place now_;
  mutable Place counted_;              // where the epoch of step counted_to_ begins
  mutable int64_t counted_to_ = 0;
  mutable std::vector<int64_t> pool_;  // all that are admitted: first the epoch's draws so far, then those that are left
  mutable size_t taken_ = 0;           // of the pool
};

}  // namespace megalith

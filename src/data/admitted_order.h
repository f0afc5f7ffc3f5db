// Which of the samples that a curriculum admits so far is drawn when. Every draw takes one of those not yet drawn in
// this epoch, each equally likely; newly admitted samples join them; when none is left the next epoch begins with all
// that are admitted.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "data/order.h"

namespace megalith {

class AdmittedOrder {
 public:
  // admitted_at[i]: the first step at which sample i may be drawn; at least one must be 0. `draws_before(step)`: how
  // many draws the steps before one make. `set` tells blended data sets apart.
  AdmittedOrder(std::vector<int64_t> admitted_at, std::function<int64_t(int64_t)> draws_before, uint64_t seed,
                uint64_t set = 0);

  // The draws of a step. Whatever was asked for before, the answer is the same; going on from the step before is
  // quick, anything else is worked out from the beginning or from what was restored. Thread-safe.
  std::vector<EpochSample> draw(int64_t step) const;

  // All that the draws from `step` on depend on: small, for a checkpoint.
  nlohmann::json state(int64_t step) const;
  void restore(const nlohmann::json& state);  // UserError where it does not fit

  int64_t samples() const { return static_cast<int64_t>(order_.size()); }
  int64_t admitted(int64_t step) const;  // how many

 private:
  struct Cluster {          // samples that were admitted together
    int64_t begin, size;    // in order_
    int64_t taken;          // in this epoch
  };
  struct State {
    int64_t step = 0, epoch = 0;
    std::vector<Cluster> clusters;
  };
  struct Level {
    int64_t step, count;    // so many are admitted from this step on
  };
  std::vector<EpochSample> advance(State& state) const;
  EpochSample take(State& state, int64_t number) const;
  State& at(int64_t step) const;  // with mutex_ held

  std::vector<int64_t> order_;    // samples, those admitted first at the front
  std::vector<Level> levels_;
  std::function<int64_t(int64_t)> draws_before_;
  uint64_t seed_, set_;
  std::string admits_;            // names what is admitted when
  State start_;                   // the beginning, or what was restored
  mutable std::mutex mutex_;
  mutable State now_;
};

}  // namespace megalith

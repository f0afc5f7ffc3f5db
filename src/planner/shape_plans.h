// One plan a shape of batch: curricula change the length of sequences while a run goes on.
#pragma once
#include <array>
#include <map>

#include "data/step_shapes.h"
#include "planner/plan.h"

namespace megalith {

class ShapePlans {
 public:
  // `whole` is the plan for full batches, the largest there are. Borrows both.
  ShapePlans(const Config& config, const Plan& whole) : config_(config), whole_(whole) {}

  // Made when it is first asked for, then kept: there are as many as a curriculum has different lengths.
  const Plan& at(const StepShape& shape);
  void forget() { made_.clear(); }  // when the whole plan has changed

 private:
  const Config& config_;
  const Plan& whole_;
  std::map<std::array<int64_t, 3>, Plan> made_;  // by sequences, length and tokens kept
};

}  // namespace megalith

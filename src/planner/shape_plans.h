// A plan for every shape of batch: curricula and token dropping change it while a run goes on.
#pragma once
#include <array>
#include <optional>

#include "data/step_shapes.h"
#include "planner/plan.h"

namespace megalith {

class ShapePlans {
 public:
  // `whole` is the run's plan, for full batches that drop least: no step needs more. Borrows both.
  ShapePlans(const PlanInput& input, const Plan& whole);

  // Made when another shape is asked for, until the next one is: shapes do not come back.
  const Plan& at(const StepShape& shape);
  void forget() { last_.reset(); }  // when the whole plan has changed

 private:
  using Key = std::array<int64_t, 3>;  // sequences, length, tokens kept
  struct Made {
    Key key;
    Plan plan;
  };
  const PlanInput& input_;
  const Plan& whole_;
  const Key key_of_whole_;
  std::optional<Made> last_;
};

}  // namespace megalith

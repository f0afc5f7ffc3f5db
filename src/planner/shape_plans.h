// A plan for every shape of batch. Curricula and token dropping change the shape during a run.
#pragma once
#include <array>
#include <optional>

#include "data/step_shapes.h"
#include "planner/plan.h"

namespace megalith {

class ShapePlans {
 public:
  // `whole` is the plan of the run, for full batches that drop the fewest tokens. No step needs more memory. Borrows both.
  ShapePlans(const PlanInput& input, const Plan& whole);

  // Returns the plan for a shape, valid until the next call. Keeps only the last plan, because shapes do not come back.
  const Plan& at(const StepShape& shape);
  void forget() { last_.reset(); }  // call it after `whole` has changed

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

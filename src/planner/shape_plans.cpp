#include "planner/shape_plans.h"

#include "planner/run_blocks.h"

namespace megalith {

ShapePlans::ShapePlans(const PlanInput& input, const Plan& whole)
    : input_(input), whole_(whole), key_of_whole_{input.batch, input.sequence, largest_kept(input).most} {}

const Plan& ShapePlans::at(const StepShape& shape) {
  const Key key{shape.sequences(), shape.length, shape.kept()};
  if (key == key_of_whole_) return whole_;
  if (last_ && last_->key == key) return last_->plan;
  return last_.emplace(key, with_shape(whole_, input_, shape)).plan;
}

}  // namespace megalith

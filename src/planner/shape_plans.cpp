#include "planner/shape_plans.h"

#include "planner/run_blocks.h"

namespace megalith {

ShapePlans::ShapePlans(const Config& config, const Plan& whole)
    : config_(config), whole_(whole), key_of_whole_{config.train.batch, config.data.sequence, largest_kept(config).most} {}

const Plan& ShapePlans::at(const StepShape& shape) {
  const Key key{shape.sequences(), shape.length, shape.kept()};
  if (key == key_of_whole_) return whole_;
  if (last_ && last_->key == key) return last_->plan;
  Config config = config_;
  config.train.batch = shape.sequences();
  config.data.sequence = shape.length;
  config.curriculum.clear();
  config.token_dropping.pacing = {};
  if (shape.kept() > 0) config.token_dropping.pacing.table = {{0, static_cast<double>(shape.kept())}};
  return last_.emplace(key, with_shape(whole_, config)).plan;
}

}  // namespace megalith

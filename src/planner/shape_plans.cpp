#include "planner/shape_plans.h"

namespace megalith {

const Plan& ShapePlans::at(const StepShape& shape) {
  const std::array<int64_t, 3> key{shape.sequences(), shape.length, shape.kept()};
  const PacingSettings& kept = config_.token_dropping.pacing;
  const int64_t in_the_end = config_.token_dropping.on() && kept.to < static_cast<double>(config_.data.sequence)
                                 ? static_cast<int64_t>(kept.to) : 0;
  if (key == std::array{config_.train.batch, config_.data.sequence, in_the_end}) return whole_;
  auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  Config config = config_;
  config.train.batch = shape.sequences();
  config.data.sequence = shape.length;
  config.token_dropping.pacing.to = static_cast<double>(shape.kept());
  return made_.emplace(key, with_shape(whole_, config)).first->second;
}

}  // namespace megalith

#include "train/step_times.h"

#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"
#include "schedule/show/step_json.h"

namespace megalith {

void StepTimes::add(const StepShape& shape, double seconds, const std::vector<Span>& spans) {
  if (empty() || shape.work() > shape_.work()) {
    clear();
    shape_ = shape;
  }
  if (shape.work() < shape_.work()) return;
  seconds_.push_back(seconds);
  constexpr ptrdiff_t kLast = 33;
  const double usual = median({seconds_.end() - std::min(kLast, std::ssize(seconds_)), seconds_.end()});
  if (typical_.empty() || std::abs(seconds - usual) <= std::abs(step_seconds(typical_) - usual)) typical_ = spans;
  // Forget the op times of the first step when the second one arrives: in the first step, caches were cold.
  if (op_steps_ == 1 && seconds_.size() == 2) op_steps_ = 0;
  const std::vector<double> ops = op_seconds(spans);
  if (op_steps_ == 0) op_seconds_.assign(ops.size(), 0);
  for (size_t i = 0; i < ops.size(); i++) op_seconds_[i] += ops[i];
  op_steps_++;
}

double StepTimes::usual() const { return median(seconds_); }

std::vector<double> StepTimes::mean_ops() const {
  std::vector<double> means = op_seconds_;
  for (double& op : means) op /= static_cast<double>(op_steps_);
  return means;
}

}  // namespace megalith

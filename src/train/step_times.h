// The times of the largest steps, to compare them with their prediction. Steps grow during a curriculum or token dropping:
// times of smaller steps are forgotten when a larger step comes.
#pragma once
#include <span>
#include <vector>

#include "data/step_shapes.h"
#include "schedule/timeline.h"

namespace megalith {

class StepTimes {
 public:
  void add(const StepShape& shape, double seconds, const std::vector<Span>& spans);  // adds a step that did not save
  void clear() { *this = {}; }                                                       // call it if the schedule has changed

  bool empty() const { return seconds_.empty(); }
  size_t size() const { return seconds_.size(); }
  const StepShape& shape() const { return shape_; }  // the shape that all these steps have
  double usual() const;                              // seconds; the median
  const std::vector<Span>& typical() const { return typical_; }  // spans of a step that took about the usual time
  std::vector<double> mean_ops() const;                          // by op

 private:
  StepShape shape_;
  std::vector<double> seconds_;
  std::vector<Span> typical_;
  std::vector<double> op_seconds_;  // by op, summed over op_steps_ steps
  int64_t op_steps_ = 0;
};

}  // namespace megalith

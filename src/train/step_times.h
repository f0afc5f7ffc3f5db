// What the largest steps took, to be held against what was predicted for them. Steps grow while a curriculum or token
// dropping goes on: what smaller ones took is forgotten when a larger one comes.
#pragma once
#include <span>
#include <vector>

#include "data/step_shapes.h"
#include "schedule/timeline.h"

namespace megalith {

class StepTimes {
 public:
  void add(const StepShape& shape, double seconds, const std::vector<Span>& spans);  // of a step without a save
  void clear() { *this = {}; }                                                       // their schedule has changed

  bool empty() const { return seconds_.empty(); }
  size_t size() const { return seconds_.size(); }
  const StepShape& shape() const { return shape_; }  // of all of them
  double usual() const;                              // seconds; the median
  const std::vector<Span>& typical() const { return typical_; }  // of a step that took about the usual time
  std::vector<double> mean_ops() const;                          // by op

 private:
  StepShape shape_;
  std::vector<double> seconds_;
  std::vector<Span> typical_;
  std::vector<double> op_seconds_;  // by op, summed over op_steps_ steps
  int64_t op_steps_ = 0;
};

}  // namespace megalith

// Watches a step while it runs: which op every lane is in.
#pragma once
#include "schedule/op.h"

namespace megalith {

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // By the thread of the lane. An op that throws does not end: the observer keeps what the rank was in.
  virtual void op_begins(const Op& op) = 0;
  virtual void op_ends(const Op& op) = 0;
};

}  // namespace megalith

// Watches a running step: which op each lane runs.
#pragma once
#include "schedule/op.h"

namespace megalith {

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // The thread of the lane calls both. op_ends is not called for an op that throws, so the observer still knows which op
  // failed.
  virtual void op_begins(const Op& op) = 0;
  virtual void op_ends(const Op& op) = 0;
};

}  // namespace megalith

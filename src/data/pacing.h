// Computes the value of a limit after some progress. It never decreases. Either a table gives the value, or this formula:
// d(t) = from + (to - from) (t / over)^(1 / root), rounded down to multiples of `step` but never below `from`.
#pragma once
#include <cstdint>

#include "config/config.h"

namespace megalith {

class Pacing {
 public:
  explicit Pacing(PacingSettings settings) : settings_(std::move(settings)) {}

  double at(int64_t progress) const;  // progress is in the settings' unit, from 0
  Counted unit() const { return settings_.unit; }
  int64_t settled() const { return settings_.over; }  // from this progress on, the value is the last one
  double last() const { return settings_.to; }

 private:
  PacingSettings settings_;
};

}  // namespace megalith

// Knows which op always runs before which other op, for any speed of the lanes. This follows from the order on a lane and
// from `after`, transitively.
#pragma once
#include <array>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

class HappensBefore {
 public:
  // Every `after` must name an op of the schedule.
  explicit HappensBefore(const Schedule& schedule);

  // Ops that wait in a cycle: each for the next one, and the last for the first. Empty if every op can run.
  const std::vector<OpId>& cycle() const { return cycle_; }
  // A legal order of all ops that can run. Without a cycle, these are all ops.
  const std::vector<OpId>& sequence() const { return sequence_; }
  // The ops of a lane, in order.
  const std::vector<OpId>& lane(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }
  // True if `a` is always done before `b` starts. Both must be in sequence(). Takes constant time: for each op, the object
  // stores how many ops of each lane must be done before it starts.
  bool before(OpId a, OpId b) const;
  // Number of ops of that lane that are always done before `op` starts.
  int32_t done_before(OpId op, Lane lane) const { return clocks_[op][static_cast<size_t>(lane)]; }

 private:
  void find_cycle(const Schedule& schedule, const std::vector<bool>& done);

  std::array<std::vector<OpId>, kLanes> lanes_;
  std::vector<size_t> lane_of_;                         // by op
  std::vector<int32_t> position_;                       // of an op on its lane
  std::vector<std::array<int32_t, kLanes>> clocks_;     // by op and lane
  std::vector<OpId> sequence_, cycle_;
};

}  // namespace megalith

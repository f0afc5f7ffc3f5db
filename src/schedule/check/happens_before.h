// Which op comes before which, whatever the speed of the lanes: by the order on a lane and by `after`,
// transitively.
#pragma once
#include <array>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

class HappensBefore {
 public:
  // Every `after` must name an op of the schedule.
  explicit HappensBefore(const Schedule& schedule);

  // Ops that wait for one another, each for the next and the last for the first; empty when every op can run.
  const std::vector<OpId>& cycle() const { return cycle_; }
  // A legal order of all ops that can run: all of them when there is no cycle.
  const std::vector<OpId>& sequence() const { return sequence_; }
  // The ops of a lane, in order.
  const std::vector<OpId>& lane(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }
  // Whether a is always done before b starts. Only for ops in sequence(). O(1): an op knows how far each lane
  // must have come before it starts.
  bool before(OpId a, OpId b) const;
  // How many ops of that lane are always done before `op` starts.
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

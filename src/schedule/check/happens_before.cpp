#include "schedule/check/happens_before.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {

HappensBefore::HappensBefore(const Schedule& schedule) {
  const size_t count = schedule.ops.size();
  lane_of_.resize(count);
  position_.resize(count);
  clocks_.resize(count);
  for (size_t op = 0; op < count; op++) {
    for (OpId after : schedule.ops[op].after) {
      MEGALITH_ASSERT(after >= 0 && static_cast<size_t>(after) < count, "op {} waits for op {}", op, after);
    }
    lane_of_[op] = static_cast<size_t>(schedule.ops[op].lane);
    position_[op] = static_cast<int32_t>(lanes_[lane_of_[op]].size());
    lanes_[lane_of_[op]].push_back(static_cast<OpId>(op));
  }

  // Let every lane run as far as it can, until no lane can continue.
  std::vector<bool> done(count, false);
  std::array<size_t, kLanes> next{};
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t lane = 0; lane < kLanes; lane++) {
      for (; next[lane] < lanes_[lane].size(); next[lane]++) {
        const OpId op = lanes_[lane][next[lane]];
        const std::vector<OpId>& after = schedule.ops[op].after;
        if (!std::all_of(after.begin(), after.end(), [&](OpId a) { return done[a]; })) break;
        auto& clock = clocks_[op];
        auto follow = [&](OpId a) {
          for (size_t l = 0; l < kLanes; l++) clock[l] = std::max(clock[l], clocks_[a][l]);
          clock[lane_of_[a]] = std::max(clock[lane_of_[a]], position_[a] + 1);
        };
        if (next[lane] > 0) follow(lanes_[lane][next[lane] - 1]);
        for (OpId a : after) follow(a);
        done[op] = true;
        sequence_.push_back(op);
        progress = true;
      }
    }
  }
  if (sequence_.size() < count) find_cycle(schedule, done);
}

bool HappensBefore::before(OpId a, OpId b) const { return a != b && clocks_[b][lane_of_[a]] > position_[a]; }

void HappensBefore::find_cycle(const Schedule& schedule, const std::vector<bool>& done) {
  // Every op that cannot run waits for another such op. Following these waits leads into a cycle.
  auto waits_for = [&](OpId op) {
    for (OpId after : schedule.ops[op].after) {
      if (!done[after]) return after;
    }
    return lanes_[lane_of_[op]][position_[op] - 1];
  };
  std::vector<int32_t> visit(schedule.ops.size(), -1);
  std::vector<OpId> path;
  OpId op = static_cast<OpId>(std::find(done.begin(), done.end(), false) - done.begin());
  for (; visit[op] < 0; op = waits_for(op)) {
    visit[op] = static_cast<int32_t>(path.size());
    path.push_back(op);
  }
  cycle_.assign(path.begin() + visit[op], path.end());
}

}  // namespace megalith

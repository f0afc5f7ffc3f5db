#include "launch/watchdog.h"

#include <algorithm>

#include "base/units.h"

namespace megalith::launch {
namespace {

// Predictions assume an undisturbed machine. First steps, other programs and full disks
// make an op several times slower, but not by hours.
constexpr double kFactor = 20, kLeast_s = 60, kLongestLook_s = 1;

}  // namespace

// An exchange may take as long as the other ranks' part of the step, even if it moves few bytes.
double Watchdog::limit_s(const RankView& rank, const LaneView& lane) const {
  if (seconds_ > 0) return static_cast<double>(seconds_);
  return std::max(kLeast_s, kFactor * std::max(lane.predicted_s, rank.step_predicted_s));
}

std::optional<std::string> Watchdog::look(const std::vector<RankView>& ranks, double passed_s) {
  if (seconds_ < 0) return std::nullopt;
  std::optional<std::string> overdue;
  for (const RankView& rank : ranks) {
    if (rank.ended()) continue;
    for (const LaneView& lane : rank.lanes) {
      Watched& watched = watched_[{rank.rank, lane.lane}];
      if (watched.entered != lane.entered) watched = {lane.entered, 0};
      watched.for_s += std::min(passed_s, kLongestLook_s);
      const double limit = limit_s(rank, lane);
      if (watched.for_s > limit && !overdue)
        overdue = fmt::format("rank {}: {} at step {} has taken {} so far (predicted: {}; run.watchdog allows {})",
                              rank.rank, describe(lane), rank.step, show_seconds(watched.for_s),
                              lane.predicted_s > 0 ? show_seconds(lane.predicted_s) : "unknown", show_seconds(limit));
    }
  }
  return overdue;
}

}  // namespace megalith::launch

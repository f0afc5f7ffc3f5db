// Notices an op that takes far longer than predicted.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "launch/rank_view.h"

namespace megalith::launch {

class Watchdog {
 public:
  explicit Watchdog(int64_t seconds) : seconds_(seconds) {}  // run.watchdog

  // Call it repeatedly; `passed_s` is the time since the call before. Returns a message about an overdue op, if there is
  // one. A gap between calls counts as 1 s at most. So a suspended run does not count as hung.
  std::optional<std::string> look(const std::vector<RankView>& ranks, double passed_s);

  double limit_s(const RankView& rank, const LaneView& lane) const;

 private:
  struct Watched {
    uint64_t entered = 0;
    double for_s = 0;
  };
  int64_t seconds_;
  std::map<std::pair<int, Lane>, Watched> watched_;
};

}  // namespace megalith::launch

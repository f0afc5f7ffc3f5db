// One rank as the supervisor knows it: its status page, process and host. Sent between hosts as JSON.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/status_page.h"

namespace megalith::launch {

struct LaneView {
  Lane lane{};
  std::string op;          // name of the op's kind
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  uint64_t entered = 0;    // counts ops: a new number means a new op
  double for_s = 0;        // time in this op so far
  double predicted_s = 0;
  std::string exchange;    // name of the exchange it waits in; empty: it does not wait
  std::vector<int> peers;  // ranks it waits for
  int more_peers = 0;      // further peers, not listed
};

enum class Life { running, stopped, dead };

struct RankView {
  int rank = 0;
  std::string host;
  pid_t pid = 0;
  Life life = Life::running;
  RankState state = RankState::starting;
  int code = 0;             // exit code, once it has ended
  double ended_ago_s = 0;
  std::string message;      // the error, if it failed
  int64_t step = 0, checkpoint = -1;
  double step_predicted_s = 0;
  std::vector<LaneView> lanes;  // only busy lanes

  bool ended() const { return state == RankState::finished || state == RankState::failed; }
  bool crashed() const { return life == Life::dead && !ended(); }
};

nlohmann::json to_json(const RankView& view);
RankView rank_view(const nlohmann::json& json);

// The ranks of this host, from the pages in a folder; sorted by rank.
std::vector<RankView> look_at_ranks(const std::filesystem::path& folder);
std::filesystem::path page_file(const std::filesystem::path& folder, int rank);

std::string describe(const LaneView& lane);  // "backward of block 3, micro-batch 1, in all-reduce with ranks 1, 2"
// Lists at most five ranks: "rank 3", "ranks 0, 1 and 4", "ranks 0 to 7", "ranks 0, 2, 4, 6, 8 and 3 more". `more` counts
// further ranks.
std::string list_ranks(const std::vector<int>& ranks, int more = 0);

}  // namespace megalith::launch

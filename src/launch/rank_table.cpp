#include "launch/rank_table.h"

#include <algorithm>
#include <array>

#include "base/units.h"

namespace megalith::launch {
namespace {

using Row = std::array<std::string, 11>;

std::string life_of(const RankView& rank) {
  if (rank.ended()) return fmt::format("{} ({})", name(rank.state), rank.code);
  if (rank.life == Life::dead) return "dead";
  if (rank.life == Life::stopped) return "stopped";
  return std::string(name(rank.state));
}

std::string waits_for(const LaneView& lane) {
  return lane.peers.empty() ? "" : list_ranks(lane.peers, lane.more_peers);
}

std::string number(int32_t value) { return value < 0 ? "-" : fmt::format("{}", value); }

}  // namespace

std::string rank_table(const std::vector<RankView>& ranks) {
  std::vector<Row> rows{{"rank", "host", "pid", "state", "step", "lane", "op", "block", "micro", "since", "waits for"}};
  for (const RankView& rank : ranks) {
    Row row{fmt::format("{}", rank.rank), rank.host, fmt::format("{}", rank.pid), life_of(rank),
            fmt::format("{}", rank.step), "-", "-", "-", "-", "-", ""};
    if (rank.lanes.empty() || rank.ended()) rows.push_back(row);
    else
      for (const LaneView& lane : rank.lanes) {
        row[5] = name(lane.lane);
        row[6] = lane.exchange.empty() ? lane.op : lane.op + ", " + lane.exchange;
        row[7] = number(lane.block);
        row[8] = number(lane.micro);
        row[9] = show_seconds(lane.for_s);
        row[10] = waits_for(lane);
        rows.push_back(row);
        for (size_t i = 0; i < 5; i++) row[i].clear();  // further lanes of the same rank do not repeat these
      }
  }
  Row::size_type last = rows.front().size() - 1;
  std::array<size_t, 11> width{};
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); i++) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i <= last; i++) line += fmt::format("{:<{}}  ", row[i], width[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace megalith::launch

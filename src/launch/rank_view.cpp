#include "launch/rank_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/join.h"
#include "launch/environment.h"
#include "launch/process.h"

namespace megalith::launch {
namespace {

RankView view_of(const PageReading& page, const std::string& host, double now) {
  RankView view;
  view.rank = page.rank;
  view.host = host;
  view.pid = page.pid;
  const auto process = process_stat(page.pid);
  if (is_dead(process) || process->started != page.started) view.life = Life::dead;
  else if (process->state == 'T' || process->state == 't') view.life = Life::stopped;
  view.state = page.status.state;
  view.code = page.status.code;
  view.message = page.status.message;
  if (view.ended()) view.ended_ago_s = now - page.status.ended_s;
  view.step = page.step;
  view.checkpoint = page.checkpoint;
  view.step_predicted_s = page.step_predicted_s;
  for (size_t i = 0; i < page.lanes.size(); i++) {
    const LaneStatus& lane = page.lanes[i];
    if (!lane.busy) continue;
    LaneView op{static_cast<Lane>(i),
                lane.busy == 2 ? "between ops" : std::string(name(lane.kind)),
                lane.block,
                lane.micro,
                lane.entered,
                now - lane.since_s,
                lane.predicted_s,
                lane.exchange,
                {},
                0};
    const int listed = std::clamp(lane.peers_total, 0, kPagePeers);
    op.peers.assign(lane.peers.begin(), lane.peers.begin() + listed);
    op.more_peers = lane.peers_total - listed;
    view.lanes.push_back(std::move(op));
  }
  return view;
}

}  // namespace

nlohmann::json to_json(const RankView& v) {
  nlohmann::json lanes = nlohmann::json::array();
  for (const LaneView& lane : v.lanes)
    lanes.push_back({static_cast<int>(lane.lane), lane.op, lane.block, lane.micro, lane.entered, lane.for_s,
                     lane.predicted_s, lane.exchange, lane.peers, lane.more_peers});
  return {{"rank", v.rank}, {"host", v.host}, {"pid", v.pid}, {"life", static_cast<int>(v.life)},
          {"state", static_cast<int>(v.state)}, {"code", v.code}, {"ended", v.ended_ago_s},
          {"message", v.message}, {"step", v.step}, {"checkpoint", v.checkpoint},
          {"step_predicted", v.step_predicted_s}, {"lanes", std::move(lanes)}};
}

RankView rank_view(const nlohmann::json& json) {
  RankView v;
  v.rank = json.at("rank");
  v.host = json.at("host");
  v.pid = json.at("pid");
  v.life = static_cast<Life>(json.at("life").get<int>());
  v.state = static_cast<RankState>(json.at("state").get<int>());
  v.code = json.at("code");
  v.ended_ago_s = json.at("ended");
  v.message = json.at("message");
  v.step = json.at("step");
  v.checkpoint = json.at("checkpoint");
  v.step_predicted_s = json.at("step_predicted");
  for (const nlohmann::json& lane : json.at("lanes"))
    v.lanes.push_back({static_cast<Lane>(lane.at(0).get<int>()), lane.at(1), lane.at(2), lane.at(3), lane.at(4),
                       lane.at(5), lane.at(6), lane.at(7), lane.at(8).get<std::vector<int>>(), lane.at(9)});
  return v;
}

std::filesystem::path page_file(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("rank-{}", rank);
}

std::vector<RankView> look_at_ranks(const std::filesystem::path& folder) {
  std::vector<RankView> views;
  const std::string host = host_name();
  const double now = monotonic_seconds();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("rank-"))
      if (auto page = read_page(entry.path())) views.push_back(view_of(*page, host, now));
  std::sort(views.begin(), views.end(), [](const RankView& a, const RankView& b) { return a.rank < b.rank; });
  return views;
}

std::string list_ranks(const std::vector<int>& ranks, int more) {
  constexpr size_t kShown = 5;
  if (ranks.empty()) return "no rank";
  if (ranks.size() > 2 && ranks.back() - ranks.front() == static_cast<int>(ranks.size()) - 1 &&
      std::is_sorted(ranks.begin(), ranks.end()))
    return fmt::format("ranks {} to {}{}", ranks.front(), ranks.back(), more > 0 ? fmt::format(" and {} more", more) : "");
  const size_t shown = std::min(kShown, ranks.size());
  more += static_cast<int>(ranks.size() - shown);
  if (more > 0) return fmt::format("ranks {} and {} more", join(std::span(ranks).first(shown), ", "), more);
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format("ranks {} and {}", join(std::span(ranks).first(ranks.size() - 1), ", "), ranks.back());
}

std::string describe(const LaneView& lane) {
  std::string text = lane.op;
  if (lane.block != kNoBlock) text += fmt::format(" of block {}", lane.block);
  if (lane.micro != kNoMicro) text += fmt::format(", micro-batch {}", lane.micro);
  if (lane.exchange.empty()) return text;
  text += ", in " + lane.exchange;
  if (!lane.peers.empty()) text += " with " + list_ranks(lane.peers, lane.more_peers);
  return text;
}

}  // namespace megalith::launch

#include "launch/diagnosis.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"

namespace megalith::launch {
namespace {

// The lane that has been in its op longest.
const LaneView* longest(const RankView& rank) {
  auto it = std::max_element(rank.lanes.begin(), rank.lanes.end(),
                             [](const LaneView& a, const LaneView& b) { return a.for_s < b.for_s; });
  return it == rank.lanes.end() ? nullptr : &*it;
}

std::string place(const RankView& rank) { return fmt::format("rank {} on {} (pid {})", rank.rank, rank.host, rank.pid); }

std::string doing(const RankView& rank) {
  const LaneView* lane = longest(rank);
  if (!lane) return fmt::format("not in an op, at step {}", rank.step);
  return fmt::format("in {}, at step {}, for {}", describe(*lane), rank.step, show_seconds(lane->for_s));
}

std::set<int> peers_of(const RankView& rank) {
  std::set<int> peers;
  for (const LaneView& lane : rank.lanes) peers.insert(lane.peers.begin(), lane.peers.end());
  return peers;
}

Diagnosis one(const RankView& rank, const std::string& how) { return {{rank.rank}, place(rank) + " " + how}; }

// Returns ranks that wait for each other in a cycle, or an empty list if there is no cycle.
std::vector<int> circle(const std::map<int, std::set<int>>& edges) {
  for (const auto& [start, peers] : edges) {
    std::vector<int> path{start};
    std::set<int> seen{start};
    for (int at = start;;) {
      auto it = edges.find(at);
      if (it == edges.end() || it->second.empty()) break;
      at = *it->second.begin();
      if (!seen.insert(at).second) {
        path.erase(path.begin(), std::find(path.begin(), path.end(), at));
        return path;
      }
      path.push_back(at);
    }
  }
  return {};
}

}  // namespace

Diagnosis find_culprit(const std::vector<RankView>& ranks) {
  for (const RankView& rank : ranks)
    if (rank.crashed()) return one(rank, "is dead: its process ended, " + doing(rank));
  for (const RankView& rank : ranks)
    if (rank.life == Life::stopped) return one(rank, "is stopped (by SIGSTOP or a debugger), " + doing(rank));
  for (const RankView& rank : ranks)
    if (rank.ended()) return one(rank, "has already ended");

  // `slowest` is the rank that has been in one op longest, without waiting for a rank. It is at fault if that time is
  // about as long as the others wait. `absent` is in no op: it has not reached the exchange of the others.
  const RankView *slowest = nullptr, *absent = nullptr;
  double slowest_s = 0, waited_s = 0;
  std::map<int, std::set<int>> edges;
  for (const RankView& rank : ranks) {
    edges[rank.rank] = peers_of(rank);
    if (rank.lanes.empty() && !absent) absent = &rank;
    for (const LaneView& lane : rank.lanes) {
      waited_s = std::max(waited_s, lane.for_s);
      if (!lane.exchange.empty() || lane.for_s <= slowest_s) continue;
      slowest = &rank;
      slowest_s = lane.for_s;
    }
  }
  if (slowest && slowest_s >= waited_s / 2) return one(*slowest, "makes no progress, " + doing(*slowest));
  if (absent && absent->life == Life::running)
    return one(*absent, "did not reach the operation that the others wait in, " + doing(*absent));

  // All ranks wait. A rank that is a step behind blocks the others.
  auto [behind, ahead] = std::minmax_element(ranks.begin(), ranks.end(),
                                             [](const RankView& a, const RankView& b) { return a.step < b.step; });
  if (behind != ranks.end() && behind->step < ahead->step) return one(*behind, "is behind the others, " + doing(*behind));
  std::vector<int> members = circle(edges);
  if (members.empty()) return {{}, "all ranks wait, and no single rank is the cause"};
  std::string text = list_ranks(members) + " wait for each other:";
  for (int member : members)
    for (const RankView& rank : ranks)
      if (rank.rank == member) text += fmt::format(" rank {} {};", member, doing(rank));
  text.pop_back();
  return {std::move(members), std::move(text)};
}

}  // namespace megalith::launch

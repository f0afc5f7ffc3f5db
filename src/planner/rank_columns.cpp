#include "planner/rank_columns.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace megalith {
namespace {

// Renumbers the hosts from 0, in the order in which they first occur.
RankColumn renumbered(RankColumn column) {
  std::map<int32_t, int32_t> number;
  for (int32_t& host : column.host) host = number.emplace(host, static_cast<int32_t>(number.size())).first->second;
  return column;
}

bool share_no_host(const std::vector<RankColumn>& columns) {
  std::set<int32_t> seen;
  for (const RankColumn& column : columns) {
    const std::set<int32_t> hosts(column.host.begin(), column.host.end());
    for (int32_t host : hosts)
      if (!seen.insert(host).second) return false;
  }
  return true;
}

}  // namespace

std::vector<RankColumn> columns_of(int32_t ranks, int32_t stages, std::span<const int32_t> host_of) {
  MEGALITH_ASSERT(ranks % stages == 0 && (host_of.empty() || std::ssize(host_of) == ranks), "{} ranks, {} stages", ranks,
                  stages);
  const int32_t each = ranks / stages;
  std::map<std::vector<int32_t>, int32_t> copies;  // by hosts
  for (int32_t column = 0; column < each; column++) {
    std::vector<int32_t> hosts;
    for (int32_t stage = 0; stage < stages; stage++)
      hosts.push_back(host_of.empty() ? 0 : host_of[static_cast<size_t>(stage * each + column)]);
    copies[std::move(hosts)]++;
  }
  std::vector<RankColumn> columns;
  for (const auto& [hosts, count] : copies) columns.push_back({hosts, count});
  if (!share_no_host(columns)) return columns;
  std::vector<RankColumn> different, seen;
  for (const RankColumn& column : columns) {
    if (std::ranges::find(seen, renumbered(column)) != seen.end()) continue;
    seen.push_back(renumbered(column));
    different.push_back(column);
  }
  return different;
}

}  // namespace megalith

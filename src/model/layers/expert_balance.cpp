#include "model/layers/expert_balance.h"

#include <algorithm>
#include <numeric>

namespace megalith {

ExpertBalance balance_experts(std::span<const int64_t> rows, int64_t ranks, int64_t least) {
  const int64_t experts = std::ssize(rows), here = experts / ranks;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<std::vector<int64_t>> part(at(experts), std::vector<int64_t>(at(ranks), 0));  // [expert][rank]
  std::vector<int64_t> load(at(ranks), 0), borrowed(at(ranks), 0);
  for (int64_t e = 0; e < experts; e++) {
    part[at(e)][at(e / here)] = rows[at(e)];
    load[at(e / here)] += rows[at(e)];
  }
  const int64_t mean = (std::accumulate(rows.begin(), rows.end(), int64_t{0}) + ranks - 1) / ranks;
  ExpertBalance out;
  for (;;) {
    // Moves rows from the rank with the most rows to the rank with the fewest. Takes the expert with the most rows; among
    // equals, the first one.
    const int64_t owner = std::max_element(load.begin(), load.end()) - load.begin();
    int64_t taker = -1, expert = owner * here;
    for (int64_t r = 0; r < ranks; r++)
      if (borrowed[at(r)] < kMostShadows && (taker < 0 || load[at(r)] < load[at(taker)])) taker = r;
    if (taker < 0) break;
    for (int64_t e = expert; e < (owner + 1) * here; e++)
      if (part[at(e)][at(owner)] > part[at(expert)][at(owner)]) expert = e;
    const int64_t moved = std::min({load[at(owner)] - mean, mean - load[at(taker)], part[at(expert)][at(owner)]});
    if (moved < std::max<int64_t>(least, 1)) break;
    load[at(owner)] -= moved;
    load[at(taker)] += moved;
    borrowed[at(taker)]++;
    part[at(expert)][at(owner)] -= moved;
    part[at(expert)][at(taker)] += moved;
    out.shadows.push_back({expert, owner, taker});
  }
  for (const std::vector<int64_t>& by_rank : part) {
    std::vector<int64_t>& cuts = out.cuts.emplace_back(1, 0);
    for (int64_t count : by_rank) cuts.push_back(cuts.back() + count);
  }
  return out;
}

}  // namespace megalith

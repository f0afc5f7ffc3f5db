#include "model/routing/groups.h"

#include <algorithm>
#include <cmath>

namespace megalith {

std::vector<TokenGroup> token_groups(const Experts& experts, int64_t sequences, int64_t length) {
  std::vector<TokenGroup> groups;
  if (experts.across > 0) {
    for (int64_t b = 0; b < sequences; b += experts.across)
      for (int64_t t = 0; t < length; t++)
        groups.push_back({b * length + t, length, std::min(experts.across, sequences - b)});
    return groups;
  }
  const int64_t each = experts.group > 0 ? std::min(experts.group, length) : length;
  for (int64_t b = 0; b < sequences; b++)
    for (int64_t t = 0; t < length; t += each) groups.push_back({b * length + t, 1, std::min(each, length - t)});
  return groups;
}

int64_t room(const Experts& x, double capacity, int64_t tokens) {
  const double even = static_cast<double>(x.top_k * tokens) / static_cast<double>(x.count);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(capacity * even - 1e-9)));
}

int64_t most_rows(const Experts& x, int64_t sequences, int64_t length, int64_t ranks) {
  const bool by_expert = x.router == Router::expert_choice;
  const int64_t here = x.count / ranks;
  const int64_t all = sequences * length * (by_expert ? here : std::min(x.top_k, here));
  if (x.capacity == 0 && !by_expert) return ranks * all;
  int64_t rows = 0;
  for (const TokenGroup& group : token_groups(x, sequences, length))
    rows += here * std::min(group.count, room(x, x.capacity > 0 ? x.capacity : 1, group.count));
  return ranks * std::min(all, rows);
}

}  // namespace megalith

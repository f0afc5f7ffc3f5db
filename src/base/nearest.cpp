#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace megalith {
namespace {

constexpr size_t kLongestWord = 100;  // bytes; longer words are not typos, and would make hostile input expensive
constexpr size_t kShortestBeginning = 3;  // bytes; a shorter word abbreviates too many others

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before, last, row(b.size() + 1);  // distances from the first i bytes of `a` to each prefix of `b`
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); i++) {
    before = std::exchange(last, row);
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); j++) {
      row[j + 1] = std::min({last[j] + (a[i] != b[j]), row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > kLongestWord) return {};
  std::string_view best;
  int least = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (std::string_view candidate : candidates) {
    int distance = edit_distance(word, candidate);
    if (distance < least && distance < static_cast<int>(candidate.size())) {
      least = distance;
      best = candidate;
    }
  }
  if (!best.empty() || word.size() < kShortestBeginning) return best;
  const auto longer = std::ranges::find_if(candidates, [&](std::string_view each) { return each.starts_with(word); });
  return longer == candidates.end() ? best : *longer;
}

}  // namespace megalith

#include "config/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace megalith {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);  // distances from the first i bytes of `a` to each prefix of `b`
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); i++) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); j++) {
      int replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t kLongestWord =
      100;  // bytes; longer words are not typos, and would make hostile input expensive
  if (word.size() > kLongestWord) return {};
  std::string_view best;
  int least = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (std::string_view candidate : candidates) {
    int distance = edit_distance(word, candidate);
    if (distance < least && distance < static_cast<int>(candidate.size())) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace megalith

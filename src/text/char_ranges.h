// Sets of characters as sorted ranges of code points.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace megalith {

struct CharRange {
  uint32_t first, last;
};

// `ranges` must be sorted and must not overlap.
inline bool in_ranges(std::span<const CharRange> ranges, uint32_t c) {
  const auto after = std::ranges::upper_bound(ranges, c, {}, &CharRange::first);
  return after != ranges.begin() && c <= std::prev(after)->last;
}

}  // namespace megalith

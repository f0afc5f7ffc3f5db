#include "layout/cuts.h"

#include <algorithm>

namespace megalith {

std::vector<int64_t> cut_points(int64_t n, int64_t ranks) {
  std::vector<int64_t> points;
  for (int64_t r = 0; r <= ranks; r++) points.push_back(cut_point(n, ranks, r));
  return points;
}

std::vector<int64_t> even_cuts(int64_t count, int size) {
  constexpr int64_t kLine = 64;  // elements: whole cache lines for every element size
  const int64_t lines = (count + kLine - 1) / kLine;
  std::vector<int64_t> cuts;
  for (int p = 0; p <= size; p++) cuts.push_back(std::min(count, lines * p / size * kLine));
  return cuts;
}

std::vector<PositionRange> context_ranges(int64_t length, int64_t ranks, int64_t rank) {
  if (ranks == 1) return {{0, length}};
  auto chunk = [&](int64_t c) {
    return PositionRange{cut_point(length, 2 * ranks, c), cut_point(length, 2 * ranks, c + 1)};
  };
  return {chunk(rank), chunk(2 * ranks - 1 - rank)};
}

std::vector<int64_t> context_positions(int64_t length, int64_t ranks, int64_t rank) {
  std::vector<int64_t> positions;
  for (const PositionRange& run : context_ranges(length, ranks, rank))
    for (int64_t t = run.begin; t < run.end; t++) positions.push_back(t);
  return positions;
}

int64_t context_length(int64_t length, int64_t ranks, int64_t rank) {
  int64_t sum = 0;
  for (const PositionRange& run : context_ranges(length, ranks, rank)) sum += run.size();
  return sum;
}

}  // namespace megalith

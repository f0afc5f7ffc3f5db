#include "layout/split.h"

namespace megalith {

std::vector<int64_t> cut_points(int64_t n, int64_t ranks) {
  std::vector<int64_t> points;
  for (int64_t r = 0; r <= ranks; r++) points.push_back(cut_point(n, ranks, r));
  return points;
}

std::vector<PositionRun> context_runs(int64_t length, int64_t ranks, int64_t rank) {
  if (ranks == 1) return {{0, length}};
  auto chunk = [&](int64_t c) {
    return PositionRun{cut_point(length, 2 * ranks, c), cut_point(length, 2 * ranks, c + 1)};
  };
  return {chunk(rank), chunk(2 * ranks - 1 - rank)};
}

std::vector<int64_t> context_positions(int64_t length, int64_t ranks, int64_t rank) {
  std::vector<int64_t> positions;
  for (const PositionRun& run : context_runs(length, ranks, rank))
    for (int64_t t = run.begin; t < run.end; t++) positions.push_back(t);
  return positions;
}

int64_t context_length(int64_t length, int64_t ranks, int64_t rank) {
  int64_t sum = 0;
  for (const PositionRun& run : context_runs(length, ranks, rank)) sum += run.size();
  return sum;
}

}  // namespace megalith

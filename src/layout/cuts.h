// Cuts rows, positions or elements into nearly equal ranges, one per rank.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

// Cuts `n` items as evenly as possible: rank r has [cut_point(n, ranks, r), cut_point(n, ranks, r + 1)).
inline int64_t cut_point(int64_t n, int64_t ranks, int64_t rank) { return n * rank / ranks; }
std::vector<int64_t> cut_points(int64_t n, int64_t ranks);  // all `ranks` + 1 points

// Splits `count` elements into `size` slices of nearly equal length, aligned to cache lines. Returns size + 1 offsets.
std::vector<int64_t> even_cuts(int64_t count, int size);

// Positions [begin, end) of a sequence.
struct PositionRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const PositionRange&) const = default;
};

// The positions of a sequence that a rank of the context axis holds. The sequence is cut into 2 x `ranks` chunks. The rank
// holds chunk `rank` from the front and chunk `rank` from the back, so all ranks have equal work with causal attention.
// Returns two ranges, or one if there is one rank.
std::vector<PositionRange> context_ranges(int64_t length, int64_t ranks, int64_t rank);
std::vector<int64_t> context_positions(int64_t length, int64_t ranks, int64_t rank);  // each position
int64_t context_length(int64_t length, int64_t ranks, int64_t rank);                  // number of positions

}  // namespace megalith

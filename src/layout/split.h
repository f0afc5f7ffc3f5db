// How the work inside a block is divided over ranks, as numbers: along the tensor axis by heads, feed-forward width and
// vocabulary, along the context axis by positions of the sequences, along the expert axis by experts.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

// What travels while attention runs over sequences that are cut: keys and values, round a ring; or q, k, v once and the
// output back, so that each rank has some heads of whole sequences (Ulysses).
enum class ContextForm { ring, ulysses };

struct Split {
  int64_t tensor = 1, tensor_rank = 0;    // ranks of the axis, and which of them this one is
  int64_t context = 1, context_rank = 0;
  ContextForm form = ContextForm::ring;
  int64_t expert = 1, expert_rank = 0;    // of the data axis: each has other sequences
  // Whether a rank has but some rows of its sequences.
  bool any() const { return tensor > 1 || context > 1; }
  bool operator==(const Split&) const = default;
};

// `n` things cut over ranks as evenly as can be: rank r has [cut_point(n, ranks, r), cut_point(n, ranks, r + 1)).
inline int64_t cut_point(int64_t n, int64_t ranks, int64_t rank) { return n * rank / ranks; }
std::vector<int64_t> cut_points(int64_t n, int64_t ranks);  // all ranks + 1 of them

// Positions [begin, end) of a sequence.
struct PositionRun {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const PositionRun&) const = default;
};

// What a rank of the context axis holds of a sequence: of 2 x ranks chunks the rank-th from the front and the rank-th
// from the back, so that all see as much under causal attention. One run when there is one rank.
std::vector<PositionRun> context_runs(int64_t length, int64_t ranks, int64_t rank);
std::vector<int64_t> context_positions(int64_t length, int64_t ranks, int64_t rank);  // the same, one by one
int64_t context_length(int64_t length, int64_t ranks, int64_t rank);                  // how many

}  // namespace megalith

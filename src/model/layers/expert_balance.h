// Decides which rank computes how many rows of each expert. Experts are spread over ranks, and some get more tokens than
// others. A rank with few rows borrows experts of a rank with many, and computes some of their rows. The decision depends
// only on the row counts. So all ranks decide the same, and timing has no influence.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

constexpr int64_t kMostShadows = 2;  // experts that a rank borrows at a time; each needs memory

struct ExpertBalance {
  struct ShadowExpert {
    int64_t expert, owner, taker;
  };
  // [expert][ranks + 1 offsets]: rank r computes rows [cuts[r], cuts[r + 1]) of the expert. Both the rows and the cuts are
  // in rank order, so only few rows of a borrowed expert have to be sent.
  std::vector<std::vector<int64_t>> cuts;
  std::vector<ShadowExpert> shadows;
};

// `rows`: by expert, the rows from all ranks. Each rank owns the same number of experts, in order. A rank borrows an expert
// only for at least `least` rows.
ExpertBalance balance_experts(std::span<const int64_t> rows, int64_t ranks, int64_t least);

}  // namespace megalith

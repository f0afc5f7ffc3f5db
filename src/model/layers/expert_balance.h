// Who computes how many of an expert's rows. Experts are spread over ranks, and tokens do not want them alike: a rank with
// less than its share borrows experts of one with more and takes some of their rows. Follows from how many rows there are,
// so all ranks work out the same, and no timing changes it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

constexpr int64_t kMostShadows = 2;  // experts that a rank borrows at a time: each needs room

struct ExpertBalance {
  struct ShadowExpert {
    int64_t expert, owner, taker;
  };
  // [expert][rank], and the end: of an expert's rows rank r computes [cuts[r], cuts[r + 1]). In the order of the ranks, as
  // the rows are, so that few of those that are lent have to travel.
  std::vector<std::vector<int64_t>> cuts;
  std::vector<ShadowExpert> shadows;
};

// `rows`: by expert, of all ranks, which own as many experts each, in order. A loan is of at least `least` rows.
ExpertBalance balance_experts(std::span<const int64_t> rows, int64_t ranks, int64_t least);

}  // namespace megalith

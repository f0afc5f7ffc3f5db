// Rows sorted by expert on their way to the ranks that have those experts, and back: exactly as many as there are. Without
// ranks every row stays where it is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/exchange.h"

namespace megalith {

class ExpertTravel {
 public:
  // `begin`: of the rows here, by expert of all ranks, and the end. Ranks tell each other how many rows are coming; like
  // every other call, all of them make it.
  ExpertTravel(Exchange* ranks, std::vector<int64_t> begin);

  // Of the rows that come, by expert that is here, and the end. An expert's rows are in the order of the ranks they come
  // from, so in the order of the step's batch.
  std::span<const int64_t> begin() const { return begin_; }

  // Rows [R, width], or a number a row [R], to their experts; and what became of those back to where they came from, in
  // the order in which they left.
  at::Tensor there(at::Tensor rows) const;
  at::Tensor back(at::Tensor rows) const;

 private:
  Exchange* ranks_;
  std::vector<int64_t> begin_;
  std::vector<int64_t> leaving_, coming_;       // cuts by rank
  std::vector<int64_t> by_expert_, by_rank_;    // of the rows that come: from the order of arrival to begin's, and back
};

}  // namespace megalith

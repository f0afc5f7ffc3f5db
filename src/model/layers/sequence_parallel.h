// The rows between products are split over the ranks of the tensor axis: each rank has a part of all N rows. All rows are
// gathered before a product whose columns are cut. After a product whose depth is cut, the results of the ranks are summed,
// and every rank takes its rows. Without ranks, all functions return their argument.
#pragma once
#include "model/exchange.h"

namespace megalith {

struct SequenceParallel {
  Exchange* ranks = nullptr;

  // Returns all rows. mine_SC has the rows of this rank.
  at::Tensor all_gather(const at::Tensor& mine_SC, int64_t rows) const;
  // Returns this rank's rows of the sum over the ranks. Overwrites `partial_NC`.
  at::Tensor reduce_scatter(at::Tensor partial_NC) const;
  // Returns this rank's rows of a tensor that all ranks have, as a view.
  at::Tensor own_rows(const at::Tensor& whole_NC) const;
};

// all_gather and reduce_scatter for any cuts of the rows.
at::Tensor gather_rows(Exchange* ranks, const at::Tensor& mine_SC, std::span<const int64_t> cuts);
at::Tensor sum_rows(Exchange* ranks, at::Tensor partial_NC, std::span<const int64_t> cuts);

}  // namespace megalith

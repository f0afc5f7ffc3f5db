// Rows that the ranks of the tensor axis share between products: each has its cut of all N. Before a product whose
// columns are cut, all rows come together; after one whose depth is cut, the ranks' results are added up and every rank
// takes its rows. Without ranks nothing happens at all.
#pragma once
#include "model/exchange.h"

namespace megalith {

struct SequenceParallel {
  Exchange* ranks = nullptr;

  // All rows, of which mine_SC are mine.
  at::Tensor all_gather(const at::Tensor& mine_SC, int64_t rows) const;
  // My rows of the sum over the ranks. Takes `partial_NC` as its workspace.
  at::Tensor reduce_scatter(at::Tensor partial_NC) const;
  // My rows of what all ranks have, a view.
  at::Tensor own_rows(const at::Tensor& whole_NC) const;
};

// The same for any cuts of the rows.
at::Tensor gather_rows(Exchange* ranks, const at::Tensor& mine_SC, std::span<const int64_t> cuts);
at::Tensor sum_rows(Exchange* ranks, at::Tensor partial_NC, std::span<const int64_t> cuts);

}  // namespace megalith

#include "model/layers/sequence_parallel.h"

#include "base/error.h"
#include "layout/cuts.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

at::Tensor slice_of(const Exchange& ranks, const at::Tensor& whole, std::span<const int64_t> cuts) {
  const auto rank = static_cast<size_t>(ranks.rank());
  return whole.narrow(0, cuts[rank], cuts[rank + 1] - cuts[rank]);
}

}  // namespace

at::Tensor gather_rows(Exchange* ranks, const at::Tensor& mine_SC, std::span<const int64_t> cuts) {
  if (!ranks) return mine_SC;
  at::Tensor whole_NC = tensor::empty({cuts.back(), mine_SC.size(1)}, mine_SC.options());
  slice_of(*ranks, whole_NC, cuts).copy_(mine_SC);
  ranks->all_gather(whole_NC, cuts);
  return whole_NC;
}

at::Tensor sum_rows(Exchange* ranks, at::Tensor partial_NC, std::span<const int64_t> cuts) {
  if (!ranks) return partial_NC;
  ranks->reduce_scatter(partial_NC, cuts);
  return slice_of(*ranks, partial_NC, cuts).clone();  // a view would keep all rows in memory
}

at::Tensor SequenceParallel::all_gather(const at::Tensor& mine_SC, int64_t rows) const {
  return ranks ? gather_rows(ranks, mine_SC, cut_points(rows, ranks->size())) : mine_SC;
}

at::Tensor SequenceParallel::reduce_scatter(at::Tensor partial_NC) const {
  if (!ranks) return partial_NC;
  const auto cuts = cut_points(partial_NC.size(0), ranks->size());
  return sum_rows(ranks, std::move(partial_NC), cuts);
}

at::Tensor SequenceParallel::own_rows(const at::Tensor& whole_NC) const {
  return ranks ? slice_of(*ranks, whole_NC, cut_points(whole_NC.size(0), ranks->size())) : whole_NC;
}

}  // namespace megalith

#include "model/absent_ranks.h"

#include <ATen/core/Tensor.h>

namespace megalith {
namespace {

at::Tensor slice_of_rank(const at::Tensor& x, std::span<const int64_t> cuts, int64_t rank) {
  return x.slice(0, cuts[static_cast<size_t>(rank)], cuts[static_cast<size_t>(rank) + 1]);
}

}  // namespace

void AbsentRanks::all_gather(at::Tensor& whole, std::span<const int64_t> cuts) {
  for (int64_t r = 0; r < size_; r++)
    if (r != rank_) slice_of_rank(whole, cuts, r).zero_();
}

// Acts as if every rank sent what this rank sends to itself. A slice of another size receives zeros.
void AbsentRanks::all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                             std::span<const int64_t> receive_cuts) {
  receive.zero_();
  const at::Tensor own = slice_of_rank(send, send_cuts, rank_);
  for (int64_t r = 0; r < size_; r++)
    if (at::Tensor to = slice_of_rank(receive, receive_cuts, r); to.sizes() == own.sizes()) to.copy_(own);
}

void AbsentRanks::start_shift(const at::Tensor&, at::Tensor& receive) { receive.zero_(); }

void AbsentRanks::start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                                   std::span<const int64_t> receive_cuts) {
  all_to_all(send, send_cuts, receive, receive_cuts);
}

}  // namespace megalith

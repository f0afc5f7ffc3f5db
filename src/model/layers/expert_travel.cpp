#include "model/layers/expert_travel.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "model/kernels/expert_rows.h"

namespace megalith {
namespace {

at::Tensor ordered(const at::Tensor& rows, std::span<const int64_t> order) {
  if (rows.dim() == 2) return kernels::gather_rows(rows, order);
  return kernels::gather_rows(rows.unsqueeze(1), order).squeeze(1);
}

at::Tensor empty_rows(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, like.options());
}

}  // namespace

ExpertTravel::ExpertTravel(Exchange* ranks, std::vector<int64_t> begin) : ranks_(ranks), begin_(std::move(begin)) {
  if (!ranks_) return;
  const int64_t size = ranks_->size(), experts = std::ssize(begin_) - 1, here = experts / size;
  MEGALITH_ASSERT(here * size == experts, "{} experts over {} ranks", experts, size);
  std::vector<int64_t> cuts;
  for (int64_t r = 0; r <= size; r++) cuts.push_back(r * here);
  at::Tensor sent = at::empty({experts}, at::kLong), came = at::empty({experts}, at::kLong);
  for (size_t e = 0; e + 1 < begin_.size(); e++) sent.mutable_data_ptr<int64_t>()[e] = begin_[e + 1] - begin_[e];
  ranks_->all_to_all(sent, cuts, came, cuts);
  for (int64_t cut : cuts) leaving_.push_back(begin_[static_cast<size_t>(cut)]);

  const int64_t* count = came.const_data_ptr<int64_t>();  // [rank, expert here]
  std::vector<int64_t> arrives;                           // first row of each, in the order of arrival
  int64_t rows = 0;
  for (int64_t i = 0; i < experts; i++) {
    if (i % here == 0) coming_.push_back(rows);
    arrives.push_back(rows);
    rows += count[i];
  }
  coming_.push_back(rows);
  begin_.assign(1, 0);
  by_rank_.resize(static_cast<size_t>(rows));
  for (int64_t e = 0; e < here; e++) {
    for (int64_t i = e; i < experts; i += here)
      for (int64_t row = 0; row < count[i]; row++) {
        const int64_t from = arrives[static_cast<size_t>(i)] + row;
        by_rank_[static_cast<size_t>(from)] = std::ssize(by_expert_);
        by_expert_.push_back(from);
      }
    begin_.push_back(std::ssize(by_expert_));
  }
}

at::Tensor ExpertTravel::there(at::Tensor rows) const {
  if (!ranks_) return rows;
  at::Tensor arrived = empty_rows(rows, coming_.back());
  ranks_->all_to_all(rows, leaving_, arrived, coming_);
  rows.reset();
  return ordered(arrived, by_expert_);
}

at::Tensor ExpertTravel::back(at::Tensor rows) const {
  if (!ranks_) return rows;
  const at::Tensor leaving = ordered(rows, by_rank_);
  rows.reset();
  at::Tensor arrived = empty_rows(leaving, leaving_.back());
  ranks_->all_to_all(leaving, coming_, arrived, leaving_);
  return arrived;
}

}  // namespace megalith

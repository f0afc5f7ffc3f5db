#include "model/layers/token_dispatch.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/kernels/expert_rows.h"
#include "model/kernels/row_copies.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

at::Tensor ordered(const at::Tensor& rows, std::span<const int64_t> order) {
  if (rows.dim() == 2) return kernels::gather_rows(rows, order);
  return kernels::gather_rows(rows.unsqueeze(1), order).squeeze(1);
}

at::Tensor empty_rows(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return tensor::empty(shape, like.options());
}

std::vector<int64_t> composed(std::span<const int64_t> outer, std::span<const int64_t> inner) {
  std::vector<int64_t> out;
  out.reserve(inner.size());
  for (int64_t i : inner) out.push_back(outer[static_cast<size_t>(i)]);
  return out;
}

std::vector<int64_t> inverse(std::span<const int64_t> order) {
  std::vector<int64_t> out(order.size());
  for (size_t i = 0; i < order.size(); i++) out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return out;
}

// The numbers of rows, [rank that they come from, expert].
class Counts {
 public:
  Counts(Exchange& ranks, std::span<const int64_t> begin) : experts_(std::ssize(begin) - 1) {
    const int64_t size = ranks.size();
    at::Tensor own = tensor::empty({size, experts_}, at::kLong);  // one copy for every rank
    for (int64_t i = 0; i < own.numel(); i++) {
      const auto e = static_cast<size_t>(i % experts_);
      own.mutable_data_ptr<int64_t>()[i] = begin[e + 1] - begin[e];
    }
    all_ = tensor::empty({size, experts_}, at::kLong);
    std::vector<int64_t> cuts(static_cast<size_t>(size) + 1);
    std::iota(cuts.begin(), cuts.end(), 0);
    ranks.all_to_all(own, cuts, all_, cuts);
  }
  int64_t of(int64_t rank, int64_t expert) const { return all_.const_data_ptr<int64_t>()[rank * experts_ + expert]; }
  int64_t before(int64_t rank, int64_t expert) const {  // rows of lower ranks
    int64_t sum = 0;
    for (int64_t r = 0; r < rank; r++) sum += of(r, expert);
    return sum;
  }
  std::vector<int64_t> by_expert() const {
    std::vector<int64_t> sums;
    for (int64_t e = 0; e < experts_; e++) sums.push_back(before(all_.size(0), e));
    return sums;
  }

 private:
  int64_t experts_;
  at::Tensor all_;
};

}  // namespace

TokenDispatch::TokenDispatch(Exchange* ranks, std::vector<int64_t> begin) : ranks_(ranks), begin_(std::move(begin)) {
  const int64_t experts = std::ssize(begin_) - 1;
  experts_.resize(static_cast<size_t>(experts));
  std::iota(experts_.begin(), experts_.end(), 0);
  wanted_ = begin_;
  if (!ranks_) return;
  const int64_t size = ranks_->size(), me = ranks_->rank(), each = experts / size;
  MEGALITH_ASSERT(each * size == experts, "{} experts over {} ranks", experts, size);
  first_own_ = me * each;
  const Counts counts(*ranks_, begin_);
  const std::vector<int64_t> all = counts.by_expert();
  balance_ = balance_experts(all, size, ranks_->rows_worth_weights());
  wanted_.assign(1, 0);
  for (int64_t e = first_own_; e < first_own_ + each; e++) wanted_.push_back(wanted_.back() + all[static_cast<size_t>(e)]);

  // The rows of an expert that come from one rank and are computed by another.
  struct Rows {
    int64_t first, last;
    int64_t count() const { return std::max<int64_t>(last - first, 0); }
  };
  const auto between = [&](int64_t from, int64_t expert, int64_t to) {
    const std::vector<int64_t>& cuts = balance_.cuts[static_cast<size_t>(expert)];
    const int64_t first = counts.before(from, expert);
    return Rows{std::max(first, cuts[static_cast<size_t>(to)]),
                std::min(first + counts.of(from, expert), cuts[static_cast<size_t>(to) + 1])};
  };
  for (int64_t to = 0; to < size; to++) {
    leaving_.push_back(std::ssize(order_));
    for (int64_t e = 0; e < experts; e++) {
      const Rows rows = between(me, e, to);
      const int64_t first = begin_[static_cast<size_t>(e)] + rows.first - counts.before(me, e);
      for (int64_t row = first; row < first + rows.count(); row++) order_.push_back(row);
    }
  }
  leaving_.push_back(std::ssize(order_));
  if (balance_.shadows.empty()) order_.clear();  // rows are sent in the order in which they are sorted
  place_ = inverse(order_);

  std::erase_if(experts_, [&](int64_t e) {
    const std::vector<int64_t>& cuts = balance_.cuts[static_cast<size_t>(e)];
    return e / each != me && cuts[static_cast<size_t>(me)] == cuts[static_cast<size_t>(me) + 1];
  });
  std::vector<std::vector<int64_t>> arrives(static_cast<size_t>(size));  // [rank][index in experts_]: first row
  int64_t arrived = 0;
  for (int64_t from = 0; from < size; from++) {
    coming_.push_back(arrived);
    for (int64_t e : experts_) {
      arrives[static_cast<size_t>(from)].push_back(arrived);
      arrived += between(from, e, me).count();
    }
  }
  coming_.push_back(arrived);
  begin_.assign(1, 0);
  for (size_t i = 0; i < experts_.size(); i++) {
    for (int64_t from = 0; from < size; from++) {
      const int64_t first = arrives[static_cast<size_t>(from)][i], count = between(from, experts_[i], me).count();
      for (int64_t row = first; row < first + count; row++) by_expert_.push_back(row);
    }
    begin_.push_back(std::ssize(by_expert_));
  }
  by_rank_ = inverse(by_expert_);
}

void TokenDispatch::travel(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                          std::span<const int64_t> receive_cuts, const Meanwhile& meanwhile) const {
  if (!meanwhile) return ranks_->all_to_all(send, send_cuts, receive, receive_cuts);
  ranks_->start_all_to_all(send, send_cuts, receive, receive_cuts);
  meanwhile();
  ranks_->finish();
}

at::Tensor TokenDispatch::sent(at::Tensor leaving, const Meanwhile& meanwhile) const {
  at::Tensor arrived = empty_rows(leaving, coming_.back());
  travel(leaving, leaving_, arrived, coming_, meanwhile);
  leaving.reset();
  return ordered(arrived, by_expert_);
}

at::Tensor TokenDispatch::returned(at::Tensor here, const Meanwhile& meanwhile) const {
  const at::Tensor leaving = ordered(here, by_rank_);
  here.reset();
  at::Tensor arrived = empty_rows(leaving, leaving_.back());
  travel(leaving, coming_, arrived, leaving_, meanwhile);
  return arrived;
}

at::Tensor TokenDispatch::dispatch(const at::Tensor& x_NC, std::span<const int64_t> token, const Meanwhile& meanwhile) const {
  if (ranks_) return sent(kernels::gather_rows(x_NC, order_.empty() ? token : composed(token, order_)), meanwhile);
  if (meanwhile) meanwhile();
  return kernels::gather_rows(x_NC, token);
}

at::Tensor TokenDispatch::dispatch(const at::Tensor& numbers_R) const {
  if (!ranks_) return numbers_R;
  return sent(order_.empty() ? numbers_R : ordered(numbers_R, order_));
}

at::Tensor TokenDispatch::combine(at::Tensor rows_HC, std::span<const int64_t> token_begin, std::span<const int64_t> token_rows,
                              const at::Tensor& onto_NC, const Meanwhile& meanwhile) const {
  at::Tensor rows_RC = ranks_ ? returned(std::move(rows_HC), meanwhile) : std::move(rows_HC);
  at::Tensor y_NC = order_.empty() ? kernels::sum_rows(rows_RC, token_begin, token_rows, onto_NC)
                                   : kernels::sum_rows(rows_RC, token_begin, composed(place_, token_rows), onto_NC);
  rows_RC.reset();
  if (!ranks_ && meanwhile) meanwhile();
  return y_NC;
}

at::Tensor TokenDispatch::combine(const at::Tensor& numbers_H) const {
  if (!ranks_) return numbers_H;
  return order_.empty() ? returned(numbers_H) : ordered(returned(numbers_H), place_);
}

}  // namespace megalith

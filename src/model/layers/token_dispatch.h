// Rows sorted by expert on their way to the ranks that compute them (expert_balance.h), and back: exactly as many as there
// are. Without ranks every row stays where it is.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/exchange.h"
#include "model/layers/expert_balance.h"

namespace megalith {

class TokenDispatch {
 public:
  // `begin`: of the rows here, by expert of all ranks, and the end. Ranks tell each other how many they have; like every
  // other call, all of them make it.
  TokenDispatch(Exchange* ranks, std::vector<int64_t> begin);

  Exchange* ranks() const { return ranks_; }
  const ExpertBalance& balance() const { return balance_; }
  // Experts whose rows are computed here, rising: this rank's own, of which `first_own` is the first, and borrowed ones.
  std::span<const int64_t> experts() const { return experts_; }
  int64_t first_own() const { return first_own_; }
  // Of the rows that come, by one of those, and the end. An expert's rows are in the order of the ranks they come from, so
  // in the order of the step's batch.
  std::span<const int64_t> begin() const { return begin_; }
  // Of all rows of the experts that this rank owns, by expert, and the end: without rows one is not needed by anybody.
  std::span<const int64_t> wanted() const { return wanted_; }

  // What the caller has to do that needs none of the rows, and none of the ranks along this axis: done while they travel.
  using Meanwhile = std::function<void()>;
  // The tokens' rows of x to where they are computed; or a number a row.
  at::Tensor dispatch(const at::Tensor& x_NC, std::span<const int64_t> token, const Meanwhile& meanwhile = {}) const;
  at::Tensor dispatch(const at::Tensor& numbers_R) const;
  // What became of them back to where they came from. Rows add up by token, as in kernels::sum_rows.
  at::Tensor combine(at::Tensor rows_HC, std::span<const int64_t> token_begin, std::span<const int64_t> token_rows,
                  const at::Tensor& onto_NC = {}, const Meanwhile& meanwhile = {}) const;
  at::Tensor combine(const at::Tensor& numbers_H) const;

 private:
  void travel(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
              std::span<const int64_t> receive_cuts, const Meanwhile& meanwhile) const;
  at::Tensor sent(at::Tensor leaving, const Meanwhile& meanwhile = {}) const;
  at::Tensor returned(at::Tensor here, const Meanwhile& meanwhile = {}) const;

  Exchange* ranks_;
  std::vector<int64_t> begin_;
  ExpertBalance balance_;
  std::vector<int64_t> experts_;
  int64_t first_own_ = 0;
  std::vector<int64_t> wanted_;
  std::vector<int64_t> leaving_, coming_;     // cuts by rank
  std::vector<int64_t> order_, place_;        // of the rows here: the order in which they leave, and each one's place in it
  std::vector<int64_t> by_expert_, by_rank_;  // of the rows that come: from the order of arrival to begin's, and back
};

}  // namespace megalith

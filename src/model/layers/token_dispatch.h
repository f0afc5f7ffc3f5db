// Sends rows sorted by expert to the ranks that compute them (expert_balance.h), and the results back, without padding.
// Without ranks, every row stays where it is.
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
  // `begin`: offsets of this rank's rows, by expert (the experts of all ranks), and the end. Ranks tell each other how many
  // rows they have. All ranks must construct this together, and make all other calls together.
  TokenDispatch(Exchange* ranks, std::vector<int64_t> begin);

  Exchange* ranks() const { return ranks_; }
  const ExpertBalance& balance() const { return balance_; }
  // The experts that this rank computes, rising: its own and those that it borrows. `first_own` is its first own expert.
  std::span<const int64_t> experts() const { return experts_; }
  int64_t first_own() const { return first_own_; }
  // Offsets of the rows that this rank computes, by index in `experts()`, and the end. The rows of an expert are in the
  // order of the ranks that they come from. So they are in the order of the step's batch.
  std::span<const int64_t> begin() const { return begin_; }
  // Offsets of the rows that all ranks together have for this rank's own experts, by expert, and the end. An expert without
  // rows need not be loaded.
  std::span<const int64_t> wanted() const { return wanted_; }

  // Work of the caller that runs while rows are sent. It must not need these rows, or other ranks along this axis.
  using Meanwhile = std::function<void()>;
  // Sends the tokens' rows of x, or one number per row, to the ranks that compute them.
  at::Tensor dispatch(const at::Tensor& x_NC, std::span<const int64_t> token, const Meanwhile& meanwhile = {}) const;
  at::Tensor dispatch(const at::Tensor& numbers_R) const;
  // Sends results back to the ranks that the rows came from. Rows are summed by token, as in kernels::sum_rows.
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
  std::vector<int64_t> leaving_, coming_;     // cuts of the sent and the received rows, by rank
  std::vector<int64_t> order_, place_;        // order in which this rank's rows are sent, and its inverse
  std::vector<int64_t> by_expert_, by_rank_;  // order of received rows as in begin(), and its inverse
};

}  // namespace megalith

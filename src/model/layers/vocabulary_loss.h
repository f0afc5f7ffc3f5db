// Loss over the vocabulary in chunks of rows: logits, softmax, gradient of input and table, chunk by chunk. Along the
// tensor axis, each rank has some columns of the logits. The ranks exchange three numbers per row.
#pragma once
#include "model/block.h"
#include "model/layers/sequence_parallel.h"

namespace megalith {

struct VocabularyLoss {
  Weight table;  // [V, C]
  Weight bias;   // [V]; undefined value: no bias
  Exchange* ranks = nullptr;  // the ranks that share the vocabulary
  int64_t vocab = 0;          // size of the whole vocabulary; 0: rows of the table
  int64_t first_id = 0;       // first id on this rank

  // Computes the loss of rows x_RC with targets_R. `each_R`, if not null, receives the loss of every row. If gx_RC is not
  // null, it receives the scaled gradient of x (with ranks, a summand of it). The gradients of table and bias are then
  // added.
  LossSums run(const at::Tensor& x_RC, const at::Tensor& targets_R, double scale, at::Tensor* gx_RC,
               at::Tensor* each_R) const;
  at::Tensor logits(const at::Tensor& x_RC) const;

 private:
  // Computes the losses of a chunk. With `gradient`, replaces the logits with their gradient.
  void chunk_loss(at::Tensor& logits_nV, const at::Tensor& targets_n, at::Tensor& loss_n, bool gradient,
                  double scale) const;
};

VocabularyLoss vocabulary_loss_of(const ModelShape& shape, const Exchanges& exchanges);

// The rows that have a target, and how to select them and put them back. If ranks share the rows, each rank selects from its
// own rows. The selected rows of all ranks are then gathered, because each rank computes some columns of their logits.
struct TargetRows {
  at::Tensor index;    // this rank's rows with a target; undefined if every row has a target
  at::Tensor targets;  // of all ranks' rows with a target
  Exchange* ranks = nullptr;
  std::vector<int64_t> cuts;  // offsets of the targets, by rank
  at::Tensor all_index;       // all ranks' rows with a target; undefined if every row has a target
  int64_t all_rows = 0;       // all ranks' rows, with and without target

  at::Tensor select(const at::Tensor& x_NC) const;
  at::Tensor gather(const at::Tensor& x_RC) const { return gather_rows(ranks, x_RC, cuts); }
  at::Tensor sum(const at::Tensor& g_RC) const { return sum_rows(ranks, g_RC, cuts); }
  // Returns a tensor like like_NC with the rows of g_RC in their places, and zeros elsewhere.
  at::Tensor scatter(const at::Tensor& g_RC, const at::Tensor& like_NC) const;
  // Computes the loss of transform(selected rows), without gradient. `each_N`, if not null, receives the loss of every
  // position.
  template <class Transform>
  LossSums loss(const VocabularyLoss& output, const at::Tensor& x_NC, at::Tensor* each_N, const Transform& transform) const {
    at::Tensor each_R;
    LossSums sums = output.run(gather(transform(select(x_NC))), targets, 1, nullptr, each_N ? &each_R : nullptr);
    if (each_N) *each_N = spread(each_R);
    return sums;
  }

 private:
  at::Tensor spread(const at::Tensor& each_R) const;  // puts losses of rows with a target among all rows
};
TargetRows target_rows(const at::Tensor& targets_N, Exchange* ranks = nullptr);

}  // namespace megalith

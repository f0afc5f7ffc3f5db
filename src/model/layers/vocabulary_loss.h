// Loss over the vocabulary in chunks of rows: logits, softmax, gradient of input and table, chunk by chunk. Along the
// tensor axis each rank has some columns of the logits; per row they exchange three numbers.
#pragma once
#include "model/block.h"
#include "model/layers/sequence_parallel.h"

namespace megalith {

struct VocabularyLoss {
  Weight table;  // [V, C]
  Weight bias;   // [V]; undefined value: none
  Exchange* ranks = nullptr;  // which have the rest of the vocabulary
  int64_t vocab = 0;          // all of it; 0: the table's
  int64_t first_id = 0;       // of those here

  // Rows of x_RC against targets_R. With gradient: gx_RC receives its gradient (scaled; where there are ranks, a summand
  // of it), the table's and the bias's are added. `each_R`, where given, becomes every row's loss.
  LossSums run(const at::Tensor& x_RC, const at::Tensor& targets_R, double scale, at::Tensor* gx_RC,
               at::Tensor* each_R) const;
  at::Tensor logits(const at::Tensor& x_RC) const;

 private:
  // Losses of a chunk; with gradient, logits become their gradient.
  void chunk_loss(at::Tensor& logits_nV, const at::Tensor& targets_n, at::Tensor& loss_n, bool gradient,
                  double scale) const;
};

VocabularyLoss vocabulary_loss_of(const ModelShape& shape, const Exchanges& exchanges);

// The rows that have a target, and the way between them and all rows. Ranks that share the rows have their own of them;
// all rows with a target meet for the vocabulary.
struct TargetRows {
  at::Tensor index;    // of the rows here; undefined when every row has a target
  at::Tensor targets;  // of all ranks' rows
  Exchange* ranks = nullptr;
  std::vector<int64_t> cuts;  // of the targets, by rank
  at::Tensor all_index;       // of all ranks' rows; undefined when every row has a target
  int64_t all_rows = 0;       // with and without target

  at::Tensor select(const at::Tensor& x_NC) const;
  at::Tensor gather(const at::Tensor& x_RC) const { return gather_rows(ranks, x_RC, cuts); }
  at::Tensor sum(const at::Tensor& g_RC) const { return sum_rows(ranks, g_RC, cuts); }
  // g_RC at its rows, zeros elsewhere; shaped like x_NC.
  at::Tensor scatter(const at::Tensor& g_RC, const at::Tensor& like_NC) const;
  // Loss without gradient of transform(selected rows); `each_N`, where given, receives every position's loss.
  template <class Transform>
  LossSums loss(const VocabularyLoss& output, const at::Tensor& x_NC, at::Tensor* each_N, const Transform& transform) const {
    at::Tensor each_R;
    LossSums sums = output.run(gather(transform(select(x_NC))), targets, 1, nullptr, each_N ? &each_R : nullptr);
    if (each_N) *each_N = spread(each_R);
    return sums;
  }

 private:
  at::Tensor spread(const at::Tensor& each_R) const;  // all ranks' rows among all
};
TargetRows target_rows(const at::Tensor& targets_N, Exchange* ranks = nullptr);

}  // namespace megalith

// Loss over the vocabulary in chunks of rows: logits, softmax, gradient of input and table, chunk by chunk.
#pragma once
#include "model/block.h"

namespace megalith {

struct VocabularyLoss {
  Weight table;  // [V, C]
  Weight bias;   // [V]; undefined value: none

  // Rows of x_RC against targets_R. With gradient: gx_RC receives its gradient (scaled), the table's and the
  // bias's are added. `each_R`, where given, becomes every row's loss.
  LossSums run(const at::Tensor& x_RC, const at::Tensor& targets_R, double scale, at::Tensor* gx_RC,
               at::Tensor* each_R) const;
  at::Tensor logits(const at::Tensor& x_RC) const;

  // Rows a chunk: follows from the model alone, so that results do not depend on the memory budget.
  static int64_t chunk_rows(int64_t vocab, int64_t hidden);
};

// The rows that have a target, and the way between them and all rows.
struct TargetRows {
  at::Tensor index;    // undefined when every row has a target
  at::Tensor targets;  // of those rows

  at::Tensor select(const at::Tensor& x_NC) const;
  // g_RC at its rows, zeros elsewhere; shaped like x_NC.
  at::Tensor scatter(const at::Tensor& g_RC, const at::Tensor& like_NC) const;
  // Loss without gradient of transform(selected rows); `each_N`, where given, receives every position's loss.
  template <class Transform>
  LossSums loss(const VocabularyLoss& output, const at::Tensor& x_NC, at::Tensor* each_N, const Transform& transform) const {
    at::Tensor each_R;
    LossSums sums = output.run(transform(select(x_NC)), targets, 1, nullptr, each_N ? &each_R : nullptr);
    if (each_N) *each_N = scatter(each_R.unsqueeze(-1), x_NC).squeeze(-1);
    return sums;
  }
};
TargetRows target_rows(const at::Tensor& targets_N);

}  // namespace megalith

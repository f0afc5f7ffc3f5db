#include "model/layers/vocabulary_loss.h"

#include <algorithm>

#include "data/batch.h"
#include "layout/cuts.h"
#include "model/kernels/cross_entropy.h"
#include "model/kernels/product.h"
#include "model/layers/vocabulary_loss_facts.h"
#include "model/tensor_ops.h"

namespace megalith {

VocabularyLoss vocabulary_loss_of(const ModelShape& shape, const Exchanges& exchanges) {
  return {.ranks = exchanges.tensor,
          .vocab = shape.vocab,
          .first_id = cut_point(shape.vocab, exchanges.mesh.size(Axis::tensor), exchanges.mesh.coordinate(Axis::tensor))};
}

at::Tensor VocabularyLoss::logits(const at::Tensor& x_RC) const {
  MEGALITH_ASSERT(!ranks, "this rank has only part of the logits");
  return Linear{table, bias, MatrixOrder::out_in}.forward(x_RC);
}

void VocabularyLoss::chunk_loss(at::Tensor& logits_nV, const at::Tensor& targets_n, at::Tensor& loss_n, bool gradient,
                                double scale) const {
  if (!ranks) return kernels::cross_entropy(logits_nV, targets_n, loss_n, gradient, scale);
  at::Tensor sums_Kn3 = tensor::empty({ranks->size(), logits_nV.size(0), 3}, at::kDouble);
  const at::Tensor here_n = targets_n.sub(first_id);
  kernels::cross_entropy_begin(logits_nV, here_n, gradient, sums_Kn3[ranks->rank()]);
  ranks->all_gather(sums_Kn3, cut_points(ranks->size(), ranks->size()));
  kernels::cross_entropy_end(logits_nV, here_n, sums_Kn3, ranks->rank(), loss_n, gradient, scale);
}

LossSums VocabularyLoss::run(const at::Tensor& x_RC, const at::Tensor& targets_R, double scale, at::Tensor* gx_RC,
                             at::Tensor* each_R) const {
  const int64_t rows = x_RC.size(0), all_ids = vocab ? vocab : table.value.size(0);
  const int64_t chunk = std::min(rows, vocabulary_chunk_rows(all_ids, x_RC.size(1)));
  const auto loss_type = c10::promoteTypes(x_RC.scalar_type(), at::kFloat);
  const bool wide = x_RC.scalar_type() == loss_type;  // else logits are computed in 16 bits, losses in float32
  at::Tensor buffer = tensor::empty({chunk, table.value.size(0)}, x_RC.options());
  at::Tensor losses = tensor::empty({chunk}, x_RC.options().dtype(loss_type));
  if (each_R) *each_R = tensor::empty({rows}, losses.options());
  LossSums sums;
  for (int64_t r = 0; r < rows; r += chunk) {
    const int64_t n = std::min(chunk, rows - r);
    at::Tensor x = x_RC.narrow(0, r, n), logits_nV = buffer.narrow(0, 0, n), loss_n = losses.narrow(0, 0, n);
    kernels::product_into(x, table.value.t(), logits_nV, bias.value);
    at::Tensor scores = wide ? logits_nV : logits_nV.to(loss_type);
    chunk_loss(scores, targets_R.narrow(0, r, n), loss_n, gx_RC != nullptr, scale);
    if (each_R) each_R->narrow(0, r, n).copy_(loss_n);
    sums.loss += loss_n.sum(at::kDouble).item<double>();
    sums.targets += n;
    if (!gx_RC) continue;
    if (!wide) logits_nV.copy_(scores);
    at::Tensor gx = gx_RC->narrow(0, r, n);
    kernels::product_into(logits_nV, table.value, gx);
    Linear{table, bias, MatrixOrder::out_in}.add_gradients(x, logits_nV);
  }
  return sums;
}

TargetRows target_rows(const at::Tensor& targets_N, Exchange* ranks) {
  const int64_t all = targets_N.numel();
  const at::Tensor index = targets_N.ne(kNoTarget).nonzero().squeeze(-1);
  TargetRows rows;
  rows.targets = targets_N;
  rows.all_rows = all;
  rows.ranks = ranks;
  if (index.numel() < all) {
    rows.targets = targets_N.index_select(0, index);
    rows.index = rows.all_index = index;
  }
  if (!ranks) return rows;
  const auto* begin = index.const_data_ptr<int64_t>();
  for (int64_t row : cut_points(all, ranks->size()))
    rows.cuts.push_back(std::lower_bound(begin, begin + index.numel(), row) - begin);
  if (!rows.index.defined()) return rows;
  const auto rank = static_cast<size_t>(ranks->rank());
  rows.index = index.narrow(0, rows.cuts[rank], rows.cuts[rank + 1] - rows.cuts[rank])
                   .sub(cut_point(all, ranks->size(), ranks->rank()));
  return rows;
}

at::Tensor TargetRows::scatter(const at::Tensor& g_RC, const at::Tensor& like_NC) const {
  if (!index.defined()) return g_RC;
  return tensor::zeros({like_NC.size(0), g_RC.size(1)}, g_RC.options()).index_copy_(0, index, g_RC);
}

at::Tensor TargetRows::spread(const at::Tensor& each_R) const {
  if (!all_index.defined()) return each_R;
  return tensor::zeros({all_rows}, each_R.options()).index_copy_(0, all_index, each_R);
}

at::Tensor TargetRows::select(const at::Tensor& x_NC) const {
  return index.defined() ? x_NC.index_select(0, index) : x_NC;
}

}  // namespace megalith

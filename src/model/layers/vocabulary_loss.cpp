#include "model/layers/vocabulary_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "data/batch.h"
#include "model/kernels/cross_entropy.h"
#include "model/kernels/product.h"

namespace megalith {

int64_t VocabularyLoss::chunk_rows(int64_t vocab, int64_t hidden) {
  // Every chunk reads the table twice and its gradient once, so chunks are large: 48 MiB of logits in float32, or two
  // thirds of the table's own size where that is more.
  constexpr int64_t kElements = int64_t{12} << 20;
  const int64_t rows = std::max(kElements / vocab, std::min<int64_t>(512, hidden * 2 / 3));
  return std::clamp<int64_t>(rows / 16 * 16, 32, 1024);
}

at::Tensor VocabularyLoss::logits(const at::Tensor& x_RC) const {
  return Linear{table, bias, MatrixOrder::out_in}.forward(x_RC);
}

LossSums VocabularyLoss::run(const at::Tensor& x_RC, const at::Tensor& targets_R, double scale, at::Tensor* gx_RC,
                             at::Tensor* each_R) const {
  const int64_t rows = x_RC.size(0), vocab = table.value.size(0), chunk = std::min(rows, chunk_rows(vocab, x_RC.size(1)));
  const auto loss_type = c10::promoteTypes(x_RC.scalar_type(), at::kFloat);
  const bool wide = x_RC.scalar_type() == loss_type;  // else logits are computed in 16 bits, losses in 32
  at::Tensor buffer = at::empty({chunk, vocab}, x_RC.options()), losses = at::empty({chunk}, x_RC.options().dtype(loss_type));
  if (each_R) *each_R = at::empty({rows}, losses.options());
  LossSums sums;
  for (int64_t r = 0; r < rows; r += chunk) {
    const int64_t n = std::min(chunk, rows - r);
    at::Tensor x = x_RC.narrow(0, r, n), logits_nV = buffer.narrow(0, 0, n), loss_n = losses.narrow(0, 0, n);
    kernels::product_into(x, table.value.t(), logits_nV, bias.value);
    at::Tensor scores = wide ? logits_nV : logits_nV.to(loss_type);
    kernels::cross_entropy(scores, targets_R.narrow(0, r, n), loss_n, gx_RC != nullptr, scale);
    if (each_R) each_R->narrow(0, r, n).copy_(loss_n);
    sums.loss += at::sum(loss_n, at::kDouble).item<double>();
    sums.targets += n;
    if (!gx_RC) continue;
    if (!wide) logits_nV.copy_(scores);
    at::Tensor gx = gx_RC->narrow(0, r, n);
    kernels::product_into(logits_nV, table.value, gx);
    Linear{table, bias, MatrixOrder::out_in}.add_gradients(x, logits_nV);
  }
  return sums;
}

TargetRows target_rows(const at::Tensor& targets_N) {
  at::Tensor index = at::nonzero(targets_N.ne(kNoTarget)).squeeze(-1);
  if (index.numel() == targets_N.numel()) return {{}, targets_N};
  return {index, at::index_select(targets_N, 0, index)};
}

at::Tensor TargetRows::scatter(const at::Tensor& g_RC, const at::Tensor& like_NC) const {
  if (!index.defined()) return g_RC;
  return at::zeros({like_NC.size(0), g_RC.size(1)}, g_RC.options()).index_copy_(0, index, g_RC);
}

at::Tensor TargetRows::select(const at::Tensor& x_NC) const {
  return index.defined() ? at::index_select(x_NC, 0, index) : x_NC;
}

}  // namespace megalith

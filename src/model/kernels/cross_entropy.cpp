#include "model/kernels/cross_entropy.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/full_like.h>

#include <cmath>

#include "base/error.h"
#include "model/kernels/rows.h"
#include "model/kernels/simd.h"

namespace megalith::kernels {
namespace {

MEGALITH_VECTORISED
float row_exp_sum(const float* row, int64_t n, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += exp_fast(row[i] - largest);
  return sum;
}

// Sums of a long row are made of pieces of this many elements, so that float32 keeps its precision and a piece
// stays in the cache.
constexpr int64_t kPiece = 4096;

}  // namespace

void cross_entropy(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient,
                   double scale) {
  if (!logits_RV.is_cpu() || logits_RV.scalar_type() != at::kFloat)
    return cross_entropy_aten(logits_RV, targets_R, loss_R, gradient, scale);
  MEGALITH_ASSERT(logits_RV.is_contiguous());
  const int64_t rows = logits_RV.size(0), n = logits_RV.size(1);
  float *logits = logits_RV.mutable_data_ptr<float>(), *loss = loss_R.mutable_data_ptr<float>();
  const int64_t* targets = targets_R.const_data_ptr<int64_t>();
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      float* row = logits + r * n;
      const float largest = row_max(row, n), at_target = row[targets[r]];
      double sum = 0;
      for (int64_t i = 0; i < n; i += kPiece) {
        int64_t count = std::min(kPiece, n - i);
        sum += gradient ? row_exp(row + i, count, 1.0f, largest) : row_exp_sum(row + i, count, largest);
      }
      loss[r] = static_cast<float>(std::log(sum) + largest - at_target);
      if (!gradient) continue;
      row_scale(row, n, static_cast<float>(scale / sum));
      row[targets[r]] -= static_cast<float>(scale);
    }
  });
}

void cross_entropy_aten(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient,
                        double scale) {
  at::Tensor log_p = at::log_softmax(logits_RV, -1), targets_R1 = targets_R.unsqueeze(-1);
  loss_R.copy_(at::gather(log_p, -1, targets_R1).squeeze(-1).neg());
  if (!gradient) return;
  at::Tensor p = at::exp(log_p).mul_(scale);
  logits_RV.copy_(at::scatter_add(p, -1, targets_R1, at::full_like(targets_R1, -scale, p.options())));
}

}  // namespace megalith::kernels

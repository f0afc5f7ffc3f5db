#include "model/kernels/cross_entropy.h"

#include <ATen/Parallel.h>

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

double row_exp_sum(const double* row, int64_t n, double largest) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += std::exp(row[i] - largest);
  return sum;
}

// Long rows are summed in pieces of this many elements, so that float32 stays precise enough and a piece stays in the cache.
constexpr int64_t kPiece = 4096;

// Returns the sum of e^(logit - largest). With `gradient`, these exponentials replace the logits.
template <class Scalar>
double sum_exp(Scalar* row, int64_t n, Scalar largest, bool gradient) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    sum += gradient ? row_exp(row + i, count, Scalar(1), largest) : row_exp_sum(row + i, count, largest);
  }
  return sum;
}

template <class Scalar>
void begin_rows(at::Tensor& logits_RV, const at::Tensor& targets_R, bool gradient, at::Tensor& sums_R3) {
  const int64_t n = logits_RV.size(1);
  auto* logits = logits_RV.mutable_data_ptr<Scalar>();
  auto* sums = sums_R3.mutable_data_ptr<double>();
  const auto* targets = targets_R.const_data_ptr<int64_t>();
  at::parallel_for(0, logits_RV.size(0), 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      Scalar* row = logits + r * n;
      const Scalar largest = row_max(row, n);
      const bool here = targets[r] >= 0 && targets[r] < n;
      sums[3 * r] = largest;
      sums[3 * r + 2] = here ? row[targets[r]] : Scalar(0);
      sums[3 * r + 1] = sum_exp(row, n, largest, gradient);
    }
  });
}

template <class Scalar>
void end_rows(at::Tensor& logits_RV, const at::Tensor& targets_R, const at::Tensor& sums_KR3, int64_t rank,
              at::Tensor& loss_R, bool gradient, double scale) {
  const int64_t ranks = sums_KR3.size(0), rows = logits_RV.size(0), n = logits_RV.size(1);
  auto *logits = logits_RV.mutable_data_ptr<Scalar>(), *loss = loss_R.mutable_data_ptr<Scalar>();
  const auto* sums = sums_KR3.const_data_ptr<double>();
  const auto* targets = targets_R.const_data_ptr<int64_t>();
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      auto of = [&](int64_t k) { return sums + 3 * (k * rows + r); };
      double largest = of(0)[0], sum = 0, at_target = 0;
      for (int64_t k = 1; k < ranks; k++) largest = std::max(largest, of(k)[0]);
      for (int64_t k = 0; k < ranks; k++) {
        sum += of(k)[1] * std::exp(of(k)[0] - largest);
        at_target += of(k)[2];
      }
      loss[r] = static_cast<Scalar>(std::log(sum) + largest - at_target);
      if (!gradient) continue;
      Scalar* row = logits + r * n;
      row_scale(row, n, static_cast<Scalar>(scale * std::exp(of(rank)[0] - largest) / sum));
      if (targets[r] >= 0 && targets[r] < n) row[targets[r]] -= static_cast<Scalar>(scale);
    }
  });
}

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
      const double sum = sum_exp(row, n, largest, gradient);
      loss[r] = static_cast<float>(std::log(sum) + largest - at_target);
      if (!gradient) continue;
      row_scale(row, n, static_cast<float>(scale / sum));
      row[targets[r]] -= static_cast<float>(scale);
    }
  });
}

void cross_entropy_begin(at::Tensor& logits_RV, const at::Tensor& targets_R, bool gradient, at::Tensor sums_R3) {
  MEGALITH_ASSERT(logits_RV.is_contiguous() && logits_RV.size(1) > 0 && sums_R3.is_contiguous());
  if (logits_RV.scalar_type() == at::kFloat)
    begin_rows<float>(logits_RV, targets_R, gradient, sums_R3);
  else
    begin_rows<double>(logits_RV, targets_R, gradient, sums_R3);
}

void cross_entropy_end(at::Tensor& logits_RV, const at::Tensor& targets_R, const at::Tensor& sums_KR3, int64_t rank,
                       at::Tensor& loss_R, bool gradient, double scale) {
  if (logits_RV.scalar_type() == at::kFloat)
    end_rows<float>(logits_RV, targets_R, sums_KR3, rank, loss_R, gradient, scale);
  else
    end_rows<double>(logits_RV, targets_R, sums_KR3, rank, loss_R, gradient, scale);
}

}  // namespace megalith::kernels

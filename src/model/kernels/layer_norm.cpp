#include "model/kernels/layer_norm.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "model/kernels/plain_float.h"
#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

struct Moments {
  float mean, rstd;
};

// A row fits the first-level cache, so three passes over it read memory only once.
MEGALITH_VECTORISED
Moments row_forward(const float* x, const float* w, const float* b, float* y, int64_t n, double eps) {
  float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += x[i];
  const float mean = sum / static_cast<float>(n);
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  const auto rstd = static_cast<float>(1.0 / std::sqrt(static_cast<double>(squares) / static_cast<double>(n) + eps));
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * w[i] + b[i];
  return {mean, rstd};
}

// gx = rstd (g w - mean(g w) - x_hat mean(g w x_hat)); gw += g x_hat; gb += g
MEGALITH_VECTORISED
void row_backward(const float* g, const float* x, const float* w, Moments row, float* gx, float* gw, float* gb, int64_t n) {
  float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (int64_t i = 0; i < n; i++) {
    const float scaled = g[i] * w[i];
    sum += scaled;
    dot += scaled * (x[i] - row.mean);
  }
  const float shift = sum / static_cast<float>(n), slope = dot * row.rstd / static_cast<float>(n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float hat = (x[i] - row.mean) * row.rstd;
    gx[i] = row.rstd * (g[i] * w[i] - shift - hat * slope);
    gw[i] += g[i] * hat;
    gb[i] += g[i];
  }
}

MEGALITH_VECTORISED
void row_add(float* to, const float* from, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

constexpr int64_t kRowsAChunk = 64;  // weight gradients are summed by chunk, in an order that does not depend on the threads

}  // namespace

LayerNormed layer_norm(const at::Tensor& x_NC, const at::Tensor& w_C, const at::Tensor& b_C, double eps) {
  if (!is_plain_float(x_NC) || !is_plain_float(w_C) || !is_plain_float(b_C)) return layer_norm_aten(x_NC, w_C, b_C, eps);
  const int64_t rows = x_NC.size(0), n = x_NC.size(1);
  LayerNormed out{tensor::empty_like(x_NC), tensor::empty({rows}, x_NC.options()), tensor::empty({rows}, x_NC.options())};
  const float *x = x_NC.const_data_ptr<float>(), *w = w_C.const_data_ptr<float>(), *b = b_C.const_data_ptr<float>();
  float* y = out.y_NC.mutable_data_ptr<float>();
  float *mean = out.mean_N.mutable_data_ptr<float>(), *rstd = out.rstd_N.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const Moments row = row_forward(x + r * n, w, b, y + r * n, n, eps);
      mean[r] = row.mean;
      rstd[r] = row.rstd;
    }
  });
  return out;
}

LayerNormGradients layer_norm_backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const at::Tensor& mean_N,
                                       const at::Tensor& rstd_N, const at::Tensor& w_C, const at::Tensor& onto_NC) {
  if (!is_plain_float(g_NC) || !is_plain_float(x_NC) || !is_plain_float(w_C) ||
      (onto_NC.defined() && !is_plain_float(onto_NC)))
    return layer_norm_backward_aten(g_NC, x_NC, mean_N, rstd_N, w_C, onto_NC);
  const int64_t rows = x_NC.size(0), n = x_NC.size(1), chunks = (rows + kRowsAChunk - 1) / kRowsAChunk;
  at::Tensor gx_NC = tensor::empty_like(x_NC), partial = tensor::zeros({chunks, 2, n}, x_NC.options());
  const float *g = g_NC.const_data_ptr<float>(), *x = x_NC.const_data_ptr<float>(), *w = w_C.const_data_ptr<float>();
  const float *mean = mean_N.const_data_ptr<float>(), *rstd = rstd_N.const_data_ptr<float>();
  const float* onto = onto_NC.defined() ? onto_NC.const_data_ptr<float>() : nullptr;
  float *gx = gx_NC.mutable_data_ptr<float>(), *sums = partial.mutable_data_ptr<float>();
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++)
      for (int64_t r = c * kRowsAChunk; r < std::min(rows, (c + 1) * kRowsAChunk); r++) {
        row_backward(g + r * n, x + r * n, w, {mean[r], rstd[r]}, gx + r * n, sums + 2 * c * n, sums + (2 * c + 1) * n, n);
        if (onto) row_add(gx + r * n, onto + r * n, n);
      }
  });
  at::Tensor whole = partial.sum({0});
  return {gx_NC, whole[0], whole[1]};
}

}  // namespace megalith::kernels

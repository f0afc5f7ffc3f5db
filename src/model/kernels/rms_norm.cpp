#include "model/kernels/rms_norm.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "model/kernels/plain_float.h"
#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

MEGALITH_VECTORISED
float row_forward(const float* x, const float* w, float* y, int64_t n, double eps) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; i++) squares += x[i] * x[i];
  float rstd = static_cast<float>(1.0 / std::sqrt(static_cast<double>(squares) / static_cast<double>(n) + eps));
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * rstd * w[i];
  return rstd;
}

// gx = rstd (g w - x_hat mean(g w x_hat)); gw += g x_hat
MEGALITH_VECTORISED
void row_backward(const float* g, const float* x, const float* w, float rstd, float* gx, float* gw, int64_t n) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < n; i++) dot += g[i] * w[i] * x[i];
  float coefficient = dot * rstd * rstd / static_cast<float>(n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    gx[i] = rstd * (g[i] * w[i] - x[i] * coefficient);
    gw[i] += g[i] * x[i] * rstd;
  }
}

MEGALITH_VECTORISED
void row_add(float* to, const float* from, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

constexpr int64_t kRowsAChunk = 64;  // weight gradients are summed by chunk, in an order that does not depend on the threads

}  // namespace

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x_NC, const at::Tensor& w_C, double eps) {
  if (!is_plain_float(x_NC) || !is_plain_float(w_C)) return rms_norm_aten(x_NC, w_C, eps);
  int64_t rows = x_NC.size(0), n = x_NC.size(1);
  at::Tensor y_NC = tensor::empty_like(x_NC), rstd_N = tensor::empty({rows}, x_NC.options());
  const float *x = x_NC.const_data_ptr<float>(), *w = w_C.const_data_ptr<float>();
  float *y = y_NC.mutable_data_ptr<float>(), *rstd = rstd_N.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) rstd[r] = row_forward(x + r * n, w, y + r * n, n, eps);
  });
  return {y_NC, rstd_N};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& g_NC, const at::Tensor& x_NC,
                                                     const at::Tensor& rstd_N, const at::Tensor& w_C,
                                                     const at::Tensor& onto_NC) {
  if (!is_plain_float(g_NC) || !is_plain_float(x_NC) || !is_plain_float(w_C) ||
      (onto_NC.defined() && !is_plain_float(onto_NC))) {
    auto [gx_NC, gw_C] = rms_norm_backward_aten(g_NC, x_NC, rstd_N, w_C);
    return {onto_NC.defined() ? gx_NC.add_(onto_NC) : gx_NC, gw_C};
  }
  int64_t rows = x_NC.size(0), n = x_NC.size(1), chunks = (rows + kRowsAChunk - 1) / kRowsAChunk;
  at::Tensor gx_NC = tensor::empty_like(x_NC), partial = tensor::zeros({chunks, n}, x_NC.options());
  const float *g = g_NC.const_data_ptr<float>(), *x = x_NC.const_data_ptr<float>();
  const float *w = w_C.const_data_ptr<float>(), *rstd = rstd_N.const_data_ptr<float>();
  const float* onto = onto_NC.defined() ? onto_NC.const_data_ptr<float>() : nullptr;
  float *gx = gx_NC.mutable_data_ptr<float>(), *gw = partial.mutable_data_ptr<float>();
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++)
      for (int64_t r = c * kRowsAChunk; r < std::min(rows, (c + 1) * kRowsAChunk); r++) {
        row_backward(g + r * n, x + r * n, w, rstd[r], gx + r * n, gw + c * n, n);
        if (onto) row_add(gx + r * n, onto + r * n, n);
      }
  });
  return {gx_NC, partial.sum({0})};
}

}  // namespace megalith::kernels

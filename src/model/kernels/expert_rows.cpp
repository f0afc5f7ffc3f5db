#include "model/kernels/expert_rows.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <cstring>

#include "model/kernels/plain_float.h"
#include "model/kernels/simd.h"
#include "model/kernels/swiglu.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

MEGALITH_VECTORISED
void add_row(float* __restrict to, const float* __restrict from, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) to[i] += from[i];
}
template <class Scalar>
void add_row(Scalar* to, const Scalar* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

MEGALITH_VECTORISED
void row_forward(const float* gate, const float* up, float weight, float* h, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) h[i] = weight * (gate[i] * sigmoid_fast(gate[i]) * up[i]);
}

// gate and up become their gradients, and g becomes h. Returns the gradient of the weight.
MEGALITH_VECTORISED
float row_backward(float* gate, float* up, float weight, float* g, int64_t n) {
  float g_weight = 0;
#pragma omp simd reduction(+ : g_weight)
  for (int64_t i = 0; i < n; i++) {
    const float s = sigmoid_fast(gate[i]), silu = gate[i] * s, h = silu * up[i], g_h = weight * g[i];
    const float g_up = g_h * silu, g_gate = g_h * up[i] * (s + silu * (1.0f - s));
    g_weight += g[i] * h;
    g[i] = weight * h;
    gate[i] = g_gate;
    up[i] = g_up;
  }
  return g_weight;
}

}  // namespace

at::Tensor sum_rows(const at::Tensor& y_RC, std::span<const int64_t> begin, std::span<const int64_t> rows,
                    const at::Tensor& onto_NC) {
  const int64_t tokens = std::ssize(begin) - 1, C = y_RC.size(1);
  at::Tensor out_NC = tensor::empty({tokens, C}, y_RC.options());
  const at::Tensor onto = onto_NC.defined() ? onto_NC.contiguous() : onto_NC;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, y_RC.scalar_type(), "sum_rows", [&] {
    const auto* y = y_RC.const_data_ptr<scalar_t>();
    const auto* start = onto.defined() ? onto.const_data_ptr<scalar_t>() : nullptr;
    auto* out = out_NC.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, tokens, 64, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; t++) {
        int64_t at = begin[static_cast<size_t>(t)];
        const int64_t end = begin[static_cast<size_t>(t) + 1];
        const scalar_t* from = start ? start + t * C : at < end ? y + rows[static_cast<size_t>(at++)] * C : nullptr;
        if (from) std::memcpy(out + t * C, from, static_cast<size_t>(C) * sizeof(scalar_t));
        else std::memset(out + t * C, 0, static_cast<size_t>(C) * sizeof(scalar_t));
        for (; at < end; at++) add_row(out + t * C, y + rows[static_cast<size_t>(at)] * C, C);
      }
    });
  });
  return out_NC;
}

at::Tensor weighted_swiglu(const at::Tensor& gate_up_R2F, const at::Tensor& weight_R) {
  if (!is_plain_float(gate_up_R2F) || !is_plain_float(weight_R)) return weighted_swiglu_aten(gate_up_R2F, weight_R);
  const int64_t rows = gate_up_R2F.size(0), n = gate_up_R2F.size(1) / 2;
  at::Tensor h_RF = tensor::empty({rows, n}, gate_up_R2F.options());
  const float *in = gate_up_R2F.const_data_ptr<float>(), *weight = weight_R.const_data_ptr<float>();
  float* out = h_RF.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) row_forward(in + 2 * r * n, in + (2 * r + 1) * n, weight[r], out + r * n, n);
  });
  return h_RF;
}

at::Tensor weighted_swiglu_backward(at::Tensor& gate_up_R2F, at::Tensor& g_RF, const at::Tensor& weight_R) {
  if (!is_plain_float(gate_up_R2F) || !is_plain_float(g_RF) || !is_plain_float(weight_R))
    return weighted_swiglu_backward_aten(gate_up_R2F, g_RF, weight_R);
  const int64_t rows = gate_up_R2F.size(0), n = gate_up_R2F.size(1) / 2;
  at::Tensor g_weight_R = tensor::empty({rows}, weight_R.options());
  float *both = gate_up_R2F.mutable_data_ptr<float>(), *g = g_RF.mutable_data_ptr<float>();
  const float* weight = weight_R.const_data_ptr<float>();
  float* g_weight = g_weight_R.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++)
      g_weight[r] = row_backward(both + 2 * r * n, both + (2 * r + 1) * n, weight[r], g + r * n, n);
  });
  return g_weight_R;
}

}  // namespace megalith::kernels

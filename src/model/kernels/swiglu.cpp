#include "model/kernels/swiglu.h"

#include <ATen/Parallel.h>

#include "model/kernels/plain_float.h"
#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

MEGALITH_VECTORISED
void row_forward(const float* gate, const float* up, float* h, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) h[i] = gate[i] * sigmoid_fast(gate[i]) * up[i];
}

// In place: gate and up become their gradients, and g becomes h.
MEGALITH_VECTORISED
void row_backward(float* gate, float* up, float* g, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float s = sigmoid_fast(gate[i]), silu = gate[i] * s, g_up = g[i] * silu;
    const float g_gate = g[i] * up[i] * (s + silu * (1.0f - s));
    g[i] = silu * up[i];
    gate[i] = g_gate;
    up[i] = g_up;
  }
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up_N2F) {
  if (!is_plain_float(gate_up_N2F)) return swiglu_aten(gate_up_N2F);
  int64_t rows = gate_up_N2F.size(0), n = gate_up_N2F.size(1) / 2;
  at::Tensor h_NF = tensor::empty({rows, n}, gate_up_N2F.options());
  const float* in = gate_up_N2F.const_data_ptr<float>();
  float* out = h_NF.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) row_forward(in + 2 * r * n, in + (2 * r + 1) * n, out + r * n, n);
  });
  return h_NF;
}

void swiglu_backward(at::Tensor& gate_up_N2F, at::Tensor& g_NF) {
  if (!is_plain_float(gate_up_N2F) || !is_plain_float(g_NF)) return swiglu_backward_aten(gate_up_N2F, g_NF);
  int64_t rows = gate_up_N2F.size(0), n = gate_up_N2F.size(1) / 2;
  float *both = gate_up_N2F.mutable_data_ptr<float>(), *g = g_NF.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) row_backward(both + 2 * r * n, both + (2 * r + 1) * n, g + r * n, n);
  });
}

}  // namespace megalith::kernels

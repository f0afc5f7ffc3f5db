#include "model/kernels/swiglu.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sigmoid.h>

#include "model/kernels/simd.h"

namespace megalith::kernels {
namespace {

MEGALITH_VECTORISED
void row_forward(const float* gate, const float* up, float* h, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) h[i] = gate[i] * sigmoid_fast(gate[i]) * up[i];
}

MEGALITH_VECTORISED
void row_backward(const float* g, const float* gate, const float* up, float* g_gate, float* g_up, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float s = sigmoid_fast(gate[i]), silu = gate[i] * s;
    g_gate[i] = g[i] * up[i] * (s + silu * (1.0f - s));
    g_up[i] = g[i] * silu;
  }
}

bool ours(const at::Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kFloat && t.is_contiguous(); }

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up_N2F) {
  if (!ours(gate_up_N2F)) return swiglu_aten(gate_up_N2F);
  int64_t rows = gate_up_N2F.size(0), n = gate_up_N2F.size(1) / 2;
  at::Tensor h_NF = at::empty({rows, n}, gate_up_N2F.options());
  const float* in = gate_up_N2F.const_data_ptr<float>();
  float* out = h_NF.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) row_forward(in + 2 * r * n, in + (2 * r + 1) * n, out + r * n, n);
  });
  return h_NF;
}

at::Tensor swiglu_backward(const at::Tensor& g_NF, const at::Tensor& gate_up_N2F) {
  if (!ours(gate_up_N2F) || !ours(g_NF)) return swiglu_backward_aten(g_NF, gate_up_N2F);
  int64_t rows = gate_up_N2F.size(0), n = gate_up_N2F.size(1) / 2;
  at::Tensor out_N2F = at::empty_like(gate_up_N2F);
  const float *in = gate_up_N2F.const_data_ptr<float>(), *g = g_NF.const_data_ptr<float>();
  float* out = out_N2F.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++)
      row_backward(g + r * n, in + 2 * r * n, in + (2 * r + 1) * n, out + 2 * r * n, out + (2 * r + 1) * n, n);
  });
  return out_N2F;
}

at::Tensor swiglu_aten(const at::Tensor& gate_up_N2F) {
  int64_t n = gate_up_N2F.size(1) / 2;
  at::Tensor gate = gate_up_N2F.narrow(1, 0, n);
  return gate * at::sigmoid(gate) * gate_up_N2F.narrow(1, n, n);
}

at::Tensor swiglu_backward_aten(const at::Tensor& g_NF, const at::Tensor& gate_up_N2F) {
  int64_t n = gate_up_N2F.size(1) / 2;
  at::Tensor gate = gate_up_N2F.narrow(1, 0, n), up = gate_up_N2F.narrow(1, n, n);
  at::Tensor s = at::sigmoid(gate), silu = gate * s;
  return at::cat({g_NF * up * (s + silu * (1 - s)), g_NF * silu}, 1);
}

}  // namespace megalith::kernels

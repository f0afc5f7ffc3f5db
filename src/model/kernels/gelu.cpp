#include "model/kernels/gelu.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "model/kernels/plain_float.h"
#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

constexpr float kRoot = 0.79788456080286536f, kCube = 0.044715f;  // sqrt(2 / pi), and a constant of the formula

struct Slope {
  float y, slope;  // gelu(x) and its derivative
};

// (1 + tanh u) / 2 is the logistic function of 2u: exact in both tails.
inline __attribute__((always_inline)) float tanh_share(float x) {
  return sigmoid_fast(2 * kRoot * (x + kCube * x * x * x));
}
inline __attribute__((always_inline)) Slope tanh_slope(float x) {
  const float turned = -2 * kRoot * (x + kCube * x * x * x);
  const float e = exp_fast(turned < 80.0f ? turned : 80.0f), s = 1.0f / (1.0f + e);  // finite: e s must not be 0 inf
  const float inner = 2 * kRoot * (1 + 3 * kCube * x * x);
  return {x * s, s + x * s * (e * s) * inner};  // e s is 1 - s without cancellation
}

// Abramowitz and Stegun 7.1.26: erfc(z) = polynomial(1 / (1 + p z)) e^(-z²) for z >= 0, within 1.5e-7.
inline __attribute__((always_inline)) Slope erf_slope(float x) {
  const float z = __builtin_fabsf(x) * 0.70710678118654752f, t = 1.0f / (1.0f + 0.3275911f * z);
  const float bell = exp_fast(-z * z);
  const float poly = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float tail = 0.5f * poly * bell, share = x < 0 ? tail : 1.0f - tail;
  return {x * share, share + x * bell * 0.39894228040143268f};
}

MEGALITH_VECTORISED
void forward_tanh(const float* h, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = h[i] * tanh_share(h[i]);
}

MEGALITH_VECTORISED
void forward_erf(const float* h, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = erf_slope(h[i]).y;
}

MEGALITH_VECTORISED
void backward_tanh(float* h, float* g, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const Slope s = tanh_slope(h[i]);
    h[i] = s.y;
    g[i] *= s.slope;
  }
}

MEGALITH_VECTORISED
void backward_erf(float* h, float* g, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const Slope s = erf_slope(h[i]);
    h[i] = s.y;
    g[i] *= s.slope;
  }
}

constexpr int64_t kGrain = 16384;  // minimum number of elements per thread

}  // namespace

at::Tensor gelu(const at::Tensor& h_NF, GeluForm form) {
  if (!is_plain_float(h_NF)) return gelu_aten(h_NF, form);
  at::Tensor y_NF = tensor::empty_like(h_NF);
  const float* h = h_NF.const_data_ptr<float>();
  float* y = y_NF.mutable_data_ptr<float>();
  at::parallel_for(0, h_NF.numel(), kGrain, [&](int64_t begin, int64_t end) {
    (form == GeluForm::tanh ? forward_tanh : forward_erf)(h + begin, y + begin, end - begin);
  });
  return y_NF;
}

void gelu_backward(at::Tensor& h_NF, at::Tensor& g_NF, GeluForm form) {
  if (!is_plain_float(h_NF) || !is_plain_float(g_NF)) return gelu_backward_aten(h_NF, g_NF, form);
  float *h = h_NF.mutable_data_ptr<float>(), *g = g_NF.mutable_data_ptr<float>();
  at::parallel_for(0, h_NF.numel(), kGrain, [&](int64_t begin, int64_t end) {
    (form == GeluForm::tanh ? backward_tanh : backward_erf)(h + begin, g + begin, end - begin);
  });
}

}  // namespace megalith::kernels

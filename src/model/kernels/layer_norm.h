// y = (x - mean) / sqrt(variance + eps) * w + b, over the last dimension.
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

struct LayerNormed {
  at::Tensor y_NC, mean_N, rstd_N;
};
struct LayerNormGradients {
  at::Tensor gx_NC, gw_C, gb_C;
};

// Our kernel runs float32; the ATen form runs all other types.
LayerNormed layer_norm(const at::Tensor& x_NC, const at::Tensor& w_C, const at::Tensor& b_C, double eps);
// Adds `onto_NC`, the gradient of the residual, to the gradient of x if it is defined.
LayerNormGradients layer_norm_backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const at::Tensor& mean_N,
                                       const at::Tensor& rstd_N, const at::Tensor& w_C, const at::Tensor& onto_NC);

// The same with ATen operations: for other types and devices, and the kernel's oracle.
LayerNormed layer_norm_aten(const at::Tensor& x_NC, const at::Tensor& w_C, const at::Tensor& b_C, double eps);
LayerNormGradients layer_norm_backward_aten(const at::Tensor& g_NC, const at::Tensor& x_NC, const at::Tensor& mean_N,
                                            const at::Tensor& rstd_N, const at::Tensor& w_C, const at::Tensor& onto_NC);

}  // namespace megalith::kernels

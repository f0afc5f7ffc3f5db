// y = x / sqrt(mean(x^2) + eps) * w, over the last dimension.
#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>

namespace megalith::kernels {

// Returns (y_NC, rstd_N). Our kernel runs float32; the ATen form runs all other types.
std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x_NC, const at::Tensor& w_C, double eps);
// Returns (gradient of x, gradient of w). Adds `onto_NC`, the gradient of the residual, to the first if it is defined.
std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& g_NC, const at::Tensor& x_NC,
                                                     const at::Tensor& rstd_N, const at::Tensor& w_C,
                                                     const at::Tensor& onto_NC = {});

// The same with ATen operations: for other types and devices, and the kernel's oracle.
std::tuple<at::Tensor, at::Tensor> rms_norm_aten(const at::Tensor& x_NC, const at::Tensor& w_C, double eps);
std::tuple<at::Tensor, at::Tensor> rms_norm_backward_aten(const at::Tensor& g_NC, const at::Tensor& x_NC,
                                                          const at::Tensor& rstd_N, const at::Tensor& w_C);

}  // namespace megalith::kernels

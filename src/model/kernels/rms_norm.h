// y = x / sqrt(mean(x^2) + eps) * w, over the last dimension.
#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>

namespace megalith::kernels {

// (y_NC, rstd_N). float32 runs our kernel, everything else the ATen form.
std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x_NC, const at::Tensor& w_C, double eps);
// (gradient of x, gradient of w). `onto_NC`, where defined, is added to the first: the residual's share.
std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& g_NC, const at::Tensor& x_NC,
                                                     const at::Tensor& rstd_N, const at::Tensor& w_C,
                                                     const at::Tensor& onto_NC = {});

// The same through ATen: other types and devices, and the kernel's oracle.
std::tuple<at::Tensor, at::Tensor> rms_norm_aten(const at::Tensor& x_NC, const at::Tensor& w_C, double eps);
std::tuple<at::Tensor, at::Tensor> rms_norm_backward_aten(const at::Tensor& g_NC, const at::Tensor& x_NC,
                                                          const at::Tensor& rstd_N, const at::Tensor& w_C);

}  // namespace megalith::kernels

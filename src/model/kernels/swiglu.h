// h = silu(gate) * up, gate and up side by side in one matrix [N, 2F].
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

at::Tensor swiglu(const at::Tensor& gate_up_N2F);
// Gradient of gate_up from the gradient of h.
at::Tensor swiglu_backward(const at::Tensor& g_NF, const at::Tensor& gate_up_N2F);

at::Tensor swiglu_aten(const at::Tensor& gate_up_N2F);
at::Tensor swiglu_backward_aten(const at::Tensor& g_NF, const at::Tensor& gate_up_N2F);

}  // namespace megalith::kernels

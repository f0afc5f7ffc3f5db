// h = silu(gate) * up, where gate and up are side by side in one matrix [N, 2F].
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

at::Tensor swiglu(const at::Tensor& gate_up_N2F);
// In place and in one pass, computes what the products of backward need: gate_up becomes its gradient, and g, the gradient
// of h, becomes h.
void swiglu_backward(at::Tensor& gate_up_N2F, at::Tensor& g_NF);

// The same with ATen operations: for other types and devices, and the kernel's oracle.
at::Tensor swiglu_aten(const at::Tensor& gate_up_N2F);
void swiglu_backward_aten(at::Tensor& gate_up_N2F, at::Tensor& g_NF);

}  // namespace megalith::kernels

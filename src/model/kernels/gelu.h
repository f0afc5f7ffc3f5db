// y = h Φ(h), where Φ is the normal distribution function, in its erf form (BERT) or by the tanh formula (GPT-2).
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

enum class GeluForm { erf, tanh };

at::Tensor gelu(const at::Tensor& h_NF, GeluForm form);
// In place and in one pass, computes what the products of backward need: h becomes gelu(h), and g, the gradient of gelu(h),
// becomes the gradient of h.
void gelu_backward(at::Tensor& h_NF, at::Tensor& g_NF, GeluForm form);

// The same with ATen operations: for other types and devices, and the kernel's oracle.
at::Tensor gelu_aten(const at::Tensor& h_NF, GeluForm form);
void gelu_backward_aten(at::Tensor& h_NF, at::Tensor& g_NF, GeluForm form);

}  // namespace megalith::kernels

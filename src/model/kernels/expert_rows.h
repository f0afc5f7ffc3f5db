// The experts' rows on their way back to the tokens, and the activation between an expert's two products, each row with
// its gate.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace megalith::kernels {

// Row t is the sum of rows[begin[t]], ... of y, in this order, and of row t of `onto_NC` where that is defined.
at::Tensor sum_rows(const at::Tensor& y_RC, std::span<const int64_t> begin, std::span<const int64_t> rows,
                    const at::Tensor& onto_NC = {});

// h = weight * silu(gate) * up, a weight a row; gate and up side by side [R, 2F]. As the second product is linear, its
// result has the weight too.
at::Tensor weighted_swiglu(const at::Tensor& gate_up_R2F, const at::Tensor& weight_R);
// In place and in one pass: gate_up becomes its gradient, g, the gradient of h, becomes h. The weights' gradient.
at::Tensor weighted_swiglu_backward(at::Tensor& gate_up_R2F, at::Tensor& g_RF, const at::Tensor& weight_R);

// g through s = sigmoid(x).
at::Tensor sigmoid_gradient(const at::Tensor& g, const at::Tensor& s);

// The first two through ATen: other types, and the kernels' oracle.
at::Tensor weighted_swiglu_aten(const at::Tensor& gate_up_R2F, const at::Tensor& weight_R);
at::Tensor weighted_swiglu_backward_aten(at::Tensor& gate_up_R2F, at::Tensor& g_RF, const at::Tensor& weight_R);

}  // namespace megalith::kernels

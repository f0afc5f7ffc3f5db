// Sums the experts' rows by token. Also computes the activation between the two products of an expert, weighted by the
// gate of each row.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace megalith::kernels {

// Row t of the result is row t of `onto_NC` (if defined) plus some rows of y. These are rows[begin[t]] to
// rows[begin[t + 1] - 1], in this order.
at::Tensor sum_rows(const at::Tensor& y_RC, std::span<const int64_t> begin, std::span<const int64_t> rows,
                    const at::Tensor& onto_NC = {});

// Returns h = weight * silu(gate) * up, with one weight per row. gate and up are side by side, [R, 2F]. The second product
// is linear, so its result has the weight, too.
at::Tensor weighted_swiglu(const at::Tensor& gate_up_R2F, const at::Tensor& weight_R);
// In place and in one pass: gate_up becomes its gradient, and g, the gradient of h, becomes h. Returns the gradient of the
// weights.
at::Tensor weighted_swiglu_backward(at::Tensor& gate_up_R2F, at::Tensor& g_RF, const at::Tensor& weight_R);

// Returns the gradient of x, where s = sigmoid(x) and g is the gradient of s.
at::Tensor sigmoid_gradient(const at::Tensor& g, const at::Tensor& s);

// The two weighted_swiglu functions with ATen operations: for other types, and the kernels' oracle.
at::Tensor weighted_swiglu_aten(const at::Tensor& gate_up_R2F, const at::Tensor& weight_R);
at::Tensor weighted_swiglu_backward_aten(at::Tensor& gate_up_R2F, at::Tensor& g_RF, const at::Tensor& weight_R);

}  // namespace megalith::kernels

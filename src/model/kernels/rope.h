// Rotary position embedding in Hugging Face's order: element i pairs with i + D/2 of each head.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "families/model_shape.h"

namespace megalith::kernels {

// Rotates the first `heads` heads of every row of x_NX in place. Rows are X wide and heads are D wide. Row n is at
// positions[n]. `backward` rotates the other way, as the gradient needs it. Thread-safe.
void rope_in_place(at::Tensor& x_NX, int64_t heads, int64_t head_dim, std::span<const int64_t> positions,
                   const Rope& rope, bool backward);

// Returns the rotation of each pair of a head, in radians per position: head_dim / 2 numbers, in float32 as in Hugging Face.
std::vector<float> rope_frequencies(const Rope& rope, int64_t head_dim);

}  // namespace megalith::kernels

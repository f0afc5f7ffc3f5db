// Rotary position embedding in Hugging Face's order: element i pairs with i + D/2 of each head.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "families/model_shape.h"

namespace megalith::kernels {

// Rotates the first `heads` heads of every row of x_NX (rows are X wide, a head D) in place, row n for
// positions[n]. `backward` rotates the other way: the gradient's rule. Thread-safe.
void rope_in_place(at::Tensor& x_NX, int64_t heads, int64_t head_dim, std::span<const int64_t> positions,
                   const Rope& rope, bool backward);

// Radians a position that pair i of a head of this width turns; head_dim / 2 of them, float32 as Hugging Face has them.
std::vector<float> rope_frequencies(const Rope& rope, int64_t head_dim);

}  // namespace megalith::kernels

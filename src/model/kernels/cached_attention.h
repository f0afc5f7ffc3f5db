// Attention of a few new queries of one sequence over all of its keys so far.
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

// q [H, T, D], k and v [H / group, first + T, D], out [H, T, D], any strides but contiguous rows. Query t stands at
// position first + t and sees the keys up to its own.
void cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t first, at::Tensor out);

// The same by ATen operations: what types other than float32 take, and the kernel's oracle.
void cached_attention_plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t first, at::Tensor out);

}  // namespace megalith::kernels

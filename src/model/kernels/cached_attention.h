// Attention of a few new queries of one sequence over all of its keys so far.
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

// q and out are [H, T, D], k and v are [H / group, first + T, D]. Rows are contiguous; other strides are free. Query t is at
// position first + t and sees the keys up to this position.
void cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t first, at::Tensor out);

// The same with ATen operations: for types other than float32, and the kernel's oracle.
void cached_attention_plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t first, at::Tensor out);

}  // namespace megalith::kernels

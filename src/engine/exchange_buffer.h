// Converts tensors to the buffers that channels take.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "base/error.h"
#include "comm/buffer.h"

namespace megalith {

inline std::span<std::byte> bytes_of(const at::Tensor& x) {
  MEGALITH_ASSERT(x.is_contiguous());
  return {static_cast<std::byte*>(x.mutable_data_ptr()), static_cast<size_t>(x.nbytes())};
}

// Elements [begin, begin + count) of a contiguous tensor of numbers.
inline Buffer buffer_of(const at::Tensor& x, int64_t begin, int64_t count) {
  MEGALITH_ASSERT(x.is_contiguous());
  std::byte* data = static_cast<std::byte*>(x.mutable_data_ptr()) + begin * static_cast<int64_t>(x.element_size());
  switch (x.scalar_type()) {
    case at::kFloat: return {data, count, Element::float32};
    case at::kDouble: return {data, count, Element::float64};
    case at::kBFloat16: return {data, count, Element::bfloat16};
    case at::kHalf: return {data, count, Element::float16};
    default: return {data, count * static_cast<int64_t>(x.element_size()), Element::byte};
  }
}

inline Buffer buffer_of(const at::Tensor& x) { return buffer_of(x, 0, x.numel()); }

}  // namespace megalith

// Converts tensors to operands of products on plain pointers.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "model/kernels/blas.h"

namespace megalith::kernels {

// A matrix or a transposed matrix, as the BLAS library takes it.
struct Operand {
  Matrix<const float> matrix{};
  Transpose turn = Transpose::no;

  // Returns the block that begins at (row, column).
  Matrix<const float> from(int64_t row, int64_t column) const {
    return {matrix.data + (turn == Transpose::no ? row * matrix.stride + column : column * matrix.stride + row),
            matrix.stride};
  }
};

inline bool plain(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat && x.dim() == 2; }
inline bool by_rows(const at::Tensor& x) { return x.stride(1) == 1 && x.stride(0) >= std::max<int64_t>(1, x.size(1)); }
inline bool by_columns(const at::Tensor& x) { return x.stride(0) == 1 && x.stride(1) >= std::max<int64_t>(1, x.size(0)); }
inline bool takes(const at::Tensor& x) { return plain(x) && x.numel() > 0 && (by_rows(x) || by_columns(x)); }

inline Operand operand(const at::Tensor& x) {
  const float* data = x.const_data_ptr<float>();
  return by_rows(x) ? Operand{{data, x.stride(0)}, Transpose::no} : Operand{{data, x.stride(1)}, Transpose::yes};
}

}  // namespace megalith::kernels

// Tensors that our kernels take. All others go to the ATen forms of the kernels.
#pragma once
#include <ATen/core/Tensor.h>

namespace megalith::kernels {

inline bool is_plain_float(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous();
}

}  // namespace megalith::kernels

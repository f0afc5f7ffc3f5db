// y = x W + b for a few rows of x. In generation, nearly all the time goes into reading every weight from memory once per
// token. The results of a row do not depend on the other rows.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/layers/matrix_order.h"

namespace megalith::kernels {

// Largest number of rows. For more rows a blocked matrix product is faster.
inline constexpr int64_t kFewRows = 32;

// True if few_rows_product takes these tensors: float32, contiguous, at most kFewRows rows.
bool takes_few_rows(const at::Tensor& x_RI, const at::Tensor& weight);

// `bias` may be undefined.
at::Tensor few_rows_product(const at::Tensor& x_RI, const at::Tensor& weight, MatrixOrder order, const at::Tensor& bias);

}  // namespace megalith::kernels

// y = x W + b for a few rows of x: generation, where every weight is read from memory once a token and nothing else
// matters. A row's numbers do not depend on the other rows.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/layers/matrix_order.h"

namespace megalith::kernels {

// Rows up to which it is used: beyond them a blocked matrix product wins.
inline constexpr int64_t kFewRows = 32;

// Whether few_rows_product takes these: float32, contiguous, at most kFewRows rows.
bool takes_few_rows(const at::Tensor& x_RI, const at::Tensor& weight);

// `bias` may be undefined.
at::Tensor few_rows_product(const at::Tensor& x_RI, const at::Tensor& weight, MatrixOrder order, const at::Tensor& bias);

}  // namespace megalith::kernels

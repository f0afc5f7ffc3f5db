// Rows of a matrix moved about, of any type: to experts, to layers that drop tokens, and back.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace megalith::kernels {

// Row r is row from[r] of x.
at::Tensor gather_rows(const at::Tensor& x_NC, std::span<const int64_t> from);
// x with y's rows in the places `at`, which rise; every row is written once.
at::Tensor replace_rows(const at::Tensor& x_NC, std::span<const int64_t> at, const at::Tensor& y_KC);

}  // namespace megalith::kernels

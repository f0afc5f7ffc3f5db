// Copies rows of a matrix of any type: to experts, to layers that drop tokens, and back.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace megalith::kernels {

// Row r of the result is row from[r] of x.
at::Tensor gather_rows(const at::Tensor& x_NC, std::span<const int64_t> from);
// Returns a copy of x with the rows `at`, which must rise, replaced by the rows of y. Every row is written once.
at::Tensor replace_rows(const at::Tensor& x_NC, std::span<const int64_t> at, const at::Tensor& y_KC);

}  // namespace megalith::kernels

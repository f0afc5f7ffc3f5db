// LibTorch functions that are not methods of its tensor, compiled once. Each does the same as the LibTorch function of that
// name. A header of LibTorch for one such function (ATen/ops/) takes more than twice as long to compile as the tensor's
// header.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace megalith::tensor {

at::Tensor empty(at::IntArrayRef sizes, at::TensorOptions options = {});
at::Tensor empty_like(const at::Tensor& x);
at::Tensor zeros(at::IntArrayRef sizes, at::TensorOptions options = {});
at::Tensor zeros_like(const at::Tensor& x);
at::Tensor ones(at::IntArrayRef sizes, at::TensorOptions options = {});
at::Tensor full(at::IntArrayRef sizes, const at::Scalar& value, at::TensorOptions options = {});
at::Tensor from_values(const std::vector<int64_t>& values);  // at::tensor of int64
// Returns a view of `data`, which must outlive the view.
at::Tensor from_blob(void* data, at::IntArrayRef sizes, at::TensorOptions options);

at::Tensor cat(const std::vector<at::Tensor>& rows);
at::Tensor embedding(const at::Tensor& table, const at::Tensor& ids);
void add_out(at::Tensor& to, const at::Tensor& a, const at::Tensor& b);
void mm_out(at::Tensor& to, const at::Tensor& a, const at::Tensor& b);
void addmm_out(at::Tensor& to, const at::Tensor& start, const at::Tensor& a, const at::Tensor& b);

}  // namespace megalith::tensor

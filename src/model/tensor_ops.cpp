#include "model/tensor_ops.h"

#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace megalith::tensor {

at::Tensor empty(at::IntArrayRef sizes, at::TensorOptions options) { return at::empty(sizes, options); }
at::Tensor empty_like(const at::Tensor& x) { return at::empty_like(x); }
at::Tensor zeros(at::IntArrayRef sizes, at::TensorOptions options) { return at::zeros(sizes, options); }
at::Tensor zeros_like(const at::Tensor& x) { return at::zeros_like(x); }
at::Tensor ones(at::IntArrayRef sizes, at::TensorOptions options) { return at::ones(sizes, options); }
at::Tensor full(at::IntArrayRef sizes, const at::Scalar& value, at::TensorOptions options) {
  return at::full(sizes, value, options);
}
at::Tensor from_values(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }
at::Tensor from_blob(void* data, at::IntArrayRef sizes, at::TensorOptions options) {
  return at::from_blob(data, sizes, options);
}

at::Tensor cat(const std::vector<at::Tensor>& rows) { return at::cat(rows); }
at::Tensor embedding(const at::Tensor& table, const at::Tensor& ids) { return at::embedding(table, ids); }
void add_out(at::Tensor& to, const at::Tensor& a, const at::Tensor& b) { at::add_out(to, a, b); }
void mm_out(at::Tensor& to, const at::Tensor& a, const at::Tensor& b) { at::mm_out(to, a, b); }
void addmm_out(at::Tensor& to, const at::Tensor& start, const at::Tensor& a, const at::Tensor& b) {
  at::addmm_out(to, start, a, b);
}

}  // namespace megalith::tensor

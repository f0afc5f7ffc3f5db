#include "model/layers/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include "model/kernels/few_rows.h"

namespace megalith {

void add_to_gradient(const Weight& weight, const at::Tensor& amount) {
  if (weight.grad.defined()) weight.grad.add_(amount);
}

at::Tensor Linear::forward(const at::Tensor& x_NI) const {
  if (kernels::takes_few_rows(x_NI, weight.value))
    return kernels::few_rows_product(x_NI, weight.value, order, bias.value);
  at::Tensor w_IO = order == MatrixOrder::in_out ? weight.value : weight.value.t();
  return bias.value.defined() ? at::addmm(bias.value, x_NI, w_IO) : at::mm(x_NI, w_IO);
}

at::Tensor Linear::input_gradient(const at::Tensor& g_NO) const {
  return at::mm(g_NO, order == MatrixOrder::in_out ? weight.value.t() : weight.value);
}

void Linear::add_gradients(const at::Tensor& x_NI, const at::Tensor& g_NO) const {
  if (!weight.grad.defined()) return;
  bool in_out = order == MatrixOrder::in_out;
  at::Tensor left = in_out ? x_NI.t() : g_NO.t(), right = in_out ? g_NO : x_NI;
  if (weight.grad.scalar_type() == g_NO.scalar_type())
    weight.grad.addmm_(left, right);
  else  // 16-bit products, accumulated in float32
    weight.grad.add_(at::mm(left, right));
  if (bias.value.defined()) bias.grad.add_(at::sum(g_NO, {0}, false, bias.grad.scalar_type()));
}

}  // namespace megalith

#include "model/layers/linear.h"

#include "model/kernels/few_rows.h"
#include "model/kernels/product.h"

namespace megalith {

void add_to_gradient(const Weight& weight, const at::Tensor& amount) {
  if (weight.grad.defined()) weight.grad.add_(amount);
}

at::Tensor Linear::forward(const at::Tensor& x_NI, const at::Tensor& onto_NO) const {
  if (kernels::takes_few_rows(x_NI, weight.value)) {
    at::Tensor y_NO = kernels::few_rows_product(x_NI, weight.value, order, bias.value);
    return onto_NO.defined() ? y_NO.add_(onto_NO) : y_NO;
  }
  return kernels::product(x_NI, order == MatrixOrder::in_out ? weight.value : weight.value.t(), bias.value, onto_NO);
}

at::Tensor Linear::input_gradient(const at::Tensor& g_NO) const {
  return kernels::product(g_NO, order == MatrixOrder::in_out ? weight.value.t() : weight.value);
}

void Linear::add_gradients(const at::Tensor& x_NI, const at::Tensor& g_NO) const {
  if (!weight.grad.defined()) return;
  bool in_out = order == MatrixOrder::in_out;
  at::Tensor left = in_out ? x_NI.t() : g_NO.t(), right = in_out ? g_NO : x_NI;
  if (weight.grad.scalar_type() == g_NO.scalar_type())
    kernels::product_added(left, right, weight.grad);
  else  // 16-bit products, accumulated in float32
    weight.grad.add_(left.mm(right));
  if (bias.grad.defined()) bias.grad.add_(g_NO.sum({0}, false, bias.grad.scalar_type()));
}

at::Tensor DeepLinear::forward(const at::Tensor& x_NI, const at::Tensor& onto_SO) const {
  if (!shares.ranks) return Linear::forward(x_NI, onto_SO);
  at::Tensor y_SO = shares.reduce_scatter(Linear{weight, {}, order}.forward(x_NI));
  if (bias.value.defined()) y_SO.add_(bias.value);
  return onto_SO.defined() ? y_SO.add_(onto_SO) : y_SO;
}

void DeepLinear::add_gradients(const at::Tensor& x_NI, const at::Tensor& g_NO) const {
  if (!shares.ranks || !weight.grad.defined()) return Linear::add_gradients(x_NI, g_NO);
  Linear{weight, {}, order}.add_gradients(x_NI, g_NO);
  if (bias.grad.defined()) bias.grad.add_(shares.own_rows(g_NO).sum({0}, false, bias.grad.scalar_type()));
}

}  // namespace megalith

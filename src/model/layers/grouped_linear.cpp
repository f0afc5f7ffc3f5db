#include "model/layers/grouped_linear.h"

#include "model/kernels/few_rows.h"
#include "model/kernels/grouped_product.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

template <class View>
std::vector<at::Tensor> views(const std::vector<Weight>& weights, const View& view) {
  std::vector<at::Tensor> all;
  all.reserve(weights.size());
  for (const Weight& weight : weights) all.push_back(view(weight));
  return all;
}

}  // namespace

at::Tensor GroupedLinear::forward(const at::Tensor& x_RI, std::span<const int64_t> begin) const {
  if (!kernels::takes_few_rows(x_RI, weights[0].value))
    return kernels::grouped_product(x_RI, begin, views(weights, [](const Weight& w) { return w.value.t(); }));
  // Generation: the results of a row must not depend on the other rows.
  at::Tensor y_RO = tensor::empty({x_RI.size(0), weights[0].value.size(0)}, x_RI.options());
  for (size_t e = 0; e < weights.size(); e++) {
    const int64_t rows = begin[e + 1] - begin[e];
    if (rows > 0)
      y_RO.narrow(0, begin[e], rows).copy_(
          kernels::few_rows_product(x_RI.narrow(0, begin[e], rows), weights[e].value, MatrixOrder::out_in, {}));
  }
  return y_RO;
}

at::Tensor GroupedLinear::input_gradient(const at::Tensor& g_RO, std::span<const int64_t> begin) const {
  return kernels::grouped_product(g_RO, begin, views(weights, [](const Weight& w) { return w.value; }));
}

void GroupedLinear::add_gradients(const at::Tensor& x_RI, const at::Tensor& g_RO, std::span<const int64_t> begin) const {
  if (weights[0].grad.defined())
    kernels::grouped_product_added(g_RO, x_RI, begin, views(weights, [](const Weight& w) { return w.grad; }));
}

}  // namespace megalith

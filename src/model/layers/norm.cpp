#include "model/layers/norm.h"

#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include "model/kernels/rms_norm.h"

namespace megalith {

Normed LayerNorm::forward(const at::Tensor& x_NC) const {
  Normed out;
  std::tie(out.y_NC, out.mean_N, out.rstd_N) =
      at::native_layer_norm(x_NC, {x_NC.size(-1)}, weight.value, bias.value, eps);
  return out;
}

at::Tensor LayerNorm::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Normed& normed) const {
  bool training = weight.grad.defined();
  auto [gx_NC, gw_C, gb_C] =
      at::native_layer_norm_backward(g_NC, x_NC, {x_NC.size(-1)}, normed.mean_N, normed.rstd_N, weight.value,
                                     bias.value, {true, training, training});
  if (training) {
    add_to_gradient(weight, gw_C);
    add_to_gradient(bias, gb_C);
  }
  return gx_NC;
}

Normed RmsNorm::forward(const at::Tensor& x_NC) const {
  Normed out;
  std::tie(out.y_NC, out.rstd_N) = kernels::rms_norm(x_NC, weight.value, eps);
  return out;
}

at::Tensor RmsNorm::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Normed& normed) const {
  auto [gx_NC, gw_C] = kernels::rms_norm_backward(g_NC, x_NC, normed.rstd_N, weight.value);
  add_to_gradient(weight, gw_C);
  return gx_NC;
}

}  // namespace megalith

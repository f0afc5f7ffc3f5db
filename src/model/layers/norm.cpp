#include "model/layers/norm.h"

#include <tuple>

#include "model/kernels/layer_norm.h"
#include "model/kernels/rms_norm.h"

namespace megalith {

Normed LayerNorm::forward(const at::Tensor& x_NC) const {
  auto [y_NC, mean_N, rstd_N] = kernels::layer_norm(x_NC, weight.value, bias.value, eps);
  return {y_NC, mean_N, rstd_N};
}

at::Tensor LayerNorm::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Normed& normed,
                               const at::Tensor& onto_NC) const {
  auto [gx_NC, gw_C, gb_C] =
      kernels::layer_norm_backward(g_NC, x_NC, normed.mean_N, normed.rstd_N, weight.value, onto_NC);
  add_to_gradient(weight, gw_C);
  add_to_gradient(bias, gb_C);
  return gx_NC;
}

Normed RmsNorm::forward(const at::Tensor& x_NC) const {
  Normed out;
  std::tie(out.y_NC, out.rstd_N) = kernels::rms_norm(x_NC, weight.value, eps);
  return out;
}

at::Tensor RmsNorm::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Normed& normed,
                             const at::Tensor& onto_NC) const {
  auto [gx_NC, gw_C] = kernels::rms_norm_backward(g_NC, x_NC, normed.rstd_N, weight.value, onto_NC);
  add_to_gradient(weight, gw_C);
  return gx_NC;
}

}  // namespace megalith

#include "model/layers/feed_forward.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>

#include "model/kernels/swiglu.h"

namespace megalith {

at::Tensor GeluFeedForward::forward(const at::Tensor& x_NC, Tape* tape) const {
  at::Tensor h_NF = up.forward(x_NC);
  at::Tensor y_NC = down.forward(at::gelu(h_NF, approximate));
  if (tape) tape->keep(std::move(h_NF));
  return y_NC;
}

at::Tensor GeluFeedForward::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const {
  at::Tensor h_NF = tape.take();
  down.add_gradients(at::gelu(h_NF, approximate), g_NC);
  at::Tensor g_NF = down.input_gradient(g_NC);
  at::gelu_backward_out(g_NF, g_NF, h_NF, approximate);
  up.add_gradients(x_NC, g_NF);
  return up.input_gradient(g_NF);
}

at::Tensor SwigluFeedForward::forward(const at::Tensor& x_NC, Tape* tape) const {
  at::Tensor gate_up_N2F = gate_up.forward(x_NC);
  at::Tensor y_NC = down.forward(kernels::swiglu(gate_up_N2F));
  if (tape) tape->keep(std::move(gate_up_N2F));
  return y_NC;
}

at::Tensor SwigluFeedForward::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const {
  at::Tensor gate_up_N2F = tape.take();
  down.add_gradients(kernels::swiglu(gate_up_N2F), g_NC);
  at::Tensor g_N2F = kernels::swiglu_backward(down.input_gradient(g_NC), gate_up_N2F);
  gate_up.add_gradients(x_NC, g_N2F);
  return gate_up.input_gradient(g_N2F);
}

}  // namespace megalith

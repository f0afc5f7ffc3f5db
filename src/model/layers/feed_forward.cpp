#include "model/layers/feed_forward.h"

#include "model/kernels/gelu.h"
#include "model/kernels/swiglu.h"

namespace megalith {

at::Tensor GeluFeedForward::forward(const at::Tensor& x_NC, const Pass&, Tape* tape, const at::Tensor& onto_SC) const {
  at::Tensor h_NF = up.forward(x_NC);
  at::Tensor y_SC = down.forward(kernels::gelu(h_NF, form), onto_SC);
  if (tape) tape->keep(std::move(h_NF));
  return y_SC;
}

at::Tensor GeluFeedForward::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass&, Tape& tape) const {
  at::Tensor h_NF = tape.take(), g_NF = down.input_gradient(g_NC);
  kernels::gelu_backward(h_NF, g_NF, form);
  tape.weight_gradient([this, h_NF, g_NC] { down.add_gradients(h_NF, g_NC); });
  h_NF.reset();
  tape.weight_gradient([this, x_NC, g_NF] { up.add_gradients(x_NC, g_NF); });
  return up.input_gradient(g_NF);
}

at::Tensor SwigluFeedForward::forward(const at::Tensor& x_NC, const Pass&, Tape* tape, const at::Tensor& onto_SC) const {
  at::Tensor gate_up_N2F = gate_up.forward(x_NC);
  at::Tensor y_SC = down.forward(kernels::swiglu(gate_up_N2F), onto_SC);
  if (tape) tape->keep(std::move(gate_up_N2F));
  return y_SC;
}

at::Tensor SwigluFeedForward::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass&, Tape& tape) const {
  at::Tensor gate_up_N2F = tape.take(), g_NF = down.input_gradient(g_NC);
  kernels::swiglu_backward(gate_up_N2F, g_NF);
  tape.weight_gradient([this, g_NF, g_NC] { down.add_gradients(g_NF, g_NC); });
  g_NF.reset();
  tape.weight_gradient([this, x_NC, gate_up_N2F] { gate_up.add_gradients(x_NC, gate_up_N2F); });
  return gate_up.input_gradient(gate_up_N2F);
}

}  // namespace megalith

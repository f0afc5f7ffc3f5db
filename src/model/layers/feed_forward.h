// The feed-forward halves of a layer. Only the pre-activation is kept; backward applies the activation again, in the
// kept tensor's place.
#pragma once
#include "model/kernels/gelu.h"
#include "model/layers/linear.h"
#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

// Along the tensor axis each rank has some columns of the wide layer. Input and the gradients that backward takes are of
// all rows; the output is my share of the rows, and the gradient of the input that backward gives a summand of it, of
// all rows.
struct GeluFeedForward {
  Linear up;
  DeepLinear down;
  kernels::GeluForm form = kernels::GeluForm::tanh;

  // `onto_SC`, where given, is added: a residual.
  at::Tensor forward(const at::Tensor& x_NC, const Pass&, Tape* tape, const at::Tensor& onto_SC = {}) const;
  // What forward leaves on the tape, without its result.
  void recompute(const at::Tensor& x_NC, const Pass&, Tape& tape) const { tape.keep(up.forward(x_NC)); }
  // `x_NC` is forward's input. Called on a layer's own, which outlives the tape.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass&, Tape& tape) const;
};

struct SwigluFeedForward {
  Linear gate_up;
  DeepLinear down;

  at::Tensor forward(const at::Tensor& x_NC, const Pass&, Tape* tape, const at::Tensor& onto_SC = {}) const;
  void recompute(const at::Tensor& x_NC, const Pass&, Tape& tape) const { tape.keep(gate_up.forward(x_NC)); }
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass&, Tape& tape) const;
};

}  // namespace megalith

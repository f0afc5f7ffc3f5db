// The feed-forward halves of a layer. Only the pre-activation is kept; backward applies the activation again, in the
// kept tensor's place.
#pragma once
#include "model/kernels/gelu.h"
#include "model/layers/linear.h"
#include "model/tape.h"

namespace megalith {

struct GeluFeedForward {
  Linear up, down;
  kernels::GeluForm form = kernels::GeluForm::tanh;

  // `onto_NC`, where given, is added: a residual.
  at::Tensor forward(const at::Tensor& x_NC, Tape* tape, const at::Tensor& onto_NC = {}) const;
  // What forward leaves on the tape, without its result.
  void remake(const at::Tensor& x_NC, Tape& tape) const { tape.keep(up.forward(x_NC)); }
  // `x_NC` is forward's input.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const;
};

struct SwigluFeedForward {
  Linear gate_up, down;

  at::Tensor forward(const at::Tensor& x_NC, Tape* tape, const at::Tensor& onto_NC = {}) const;
  void remake(const at::Tensor& x_NC, Tape& tape) const { tape.keep(gate_up.forward(x_NC)); }
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const;
};

}  // namespace megalith

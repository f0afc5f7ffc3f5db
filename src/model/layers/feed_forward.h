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
  // `x_NC` is forward's input.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const;
};

struct SwigluFeedForward {
  Linear gate_up, down;

  at::Tensor forward(const at::Tensor& x_NC, Tape* tape, const at::Tensor& onto_NC = {}) const;
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const;
};

}  // namespace megalith

// The feed-forward halves of a layer. Only the pre-activation is kept; backward applies the activation again.
#pragma once
#include <string>

#include "model/layers/linear.h"
#include "model/tape.h"

namespace megalith {

struct GeluFeedForward {
  Linear up, down;
  std::string approximate;  // "tanh" (GPT-2) or "none" (BERT): ATen's names

  at::Tensor forward(const at::Tensor& x_NC, Tape* tape) const;
  // `x_NC` is forward's input.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const;
};

struct SwigluFeedForward {
  Linear gate_up, down;

  at::Tensor forward(const at::Tensor& x_NC, Tape* tape) const;
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const;
};

}  // namespace megalith

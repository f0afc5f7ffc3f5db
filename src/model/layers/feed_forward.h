// The feed-forward halves of a layer. Only the pre-activation is kept. Backward applies the activation again, in place.
#pragma once
#include "model/kernels/gelu.h"
#include "model/layers/linear.h"
#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

// Along the tensor axis, each rank has some columns of the wide layer. The input of forward and the gradient that backward
// takes have all rows. Forward returns this rank's share of the output rows. Backward returns this rank's part
// of a sum, the input gradient, for all rows.
struct GeluFeedForward {
  Linear up;
  DeepLinear down;
  kernels::GeluForm form = kernels::GeluForm::tanh;

  // Adds `onto_SC`, a residual, if it is defined.
  at::Tensor forward(const at::Tensor& x_NC, const Pass&, Tape* tape, const at::Tensor& onto_SC = {}) const;
  // Keeps on the tape what forward keeps, without computing the result.
  void recompute(const at::Tensor& x_NC, const Pass&, Tape& tape) const { tape.keep(up.forward(x_NC)); }
  // `x_NC` is the input of forward. The tape may hold a pointer to this object, so the object must outlive the tape.
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

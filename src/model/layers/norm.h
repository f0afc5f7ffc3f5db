// LayerNorm and RMSNorm over the last dimension. Only the input is kept for backward. Backward normalises again (one pass
// over memory, cheap compared to the matrix products) and gets the same bits.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/layers/linear.h"

namespace megalith {

struct Normed {
  at::Tensor y_NC;
  at::Tensor mean_N;  // LayerNorm only
  at::Tensor rstd_N;
};

struct LayerNorm {
  Weight weight, bias;
  double eps = 1e-5;
  Normed forward(const at::Tensor& x_NC) const;
  // Returns the gradient of the input, plus `onto_NC` if it is defined (the gradient of the residual). Adds to the gradients
  // of the parameters.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Normed& normed,
                      const at::Tensor& onto_NC = {}) const;
};

struct RmsNorm {
  Weight weight;
  double eps = 1e-5;
  Normed forward(const at::Tensor& x_NC) const;
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Normed& normed,
                      const at::Tensor& onto_NC = {}) const;
};

}  // namespace megalith

// y = x W + b with the weight gradient added straight into the flat gradient: nothing is allocated for it.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/layers/matrix_order.h"
#include "model/layers/sequence_parallel.h"

namespace megalith {

// A parameter as views of its block's flat buffers. The gradient is float32 and undefined outside of training.
struct Weight {
  at::Tensor value;
  at::Tensor grad;
};

// Adds `amount` (of the compute type) to a float32 gradient.
void add_to_gradient(const Weight& weight, const at::Tensor& amount);

struct Linear {
  Weight weight;
  Weight bias;  // undefined value: none
  MatrixOrder order = MatrixOrder::out_in;

  // `onto_NO`, where given, is added: a residual.
  at::Tensor forward(const at::Tensor& x_NI, const at::Tensor& onto_NO = {}) const;
  at::Tensor input_gradient(const at::Tensor& g_NO) const;
  void add_gradients(const at::Tensor& x_NI, const at::Tensor& g_NO) const;
};

// A Linear whose input, and so the depth of its product, may be cut over the ranks of the tensor axis. The output is my
// share of the rows; bias and residual are added to that. (One whose output is cut is a plain Linear on all rows.)
struct DeepLinear : Linear {
  SequenceParallel shares;

  at::Tensor forward(const at::Tensor& x_NI, const at::Tensor& onto_SO = {}) const;
  // Gradients of all rows' output; the bias's gradient is that of my share.
  void add_gradients(const at::Tensor& x_NI, const at::Tensor& g_NO) const;
};

}  // namespace megalith

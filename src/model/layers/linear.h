// y = x W + b. The weight gradient is added directly to the flat gradient. Only a 16-bit product needs a temporary tensor.
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
  Weight bias;  // undefined value: no bias
  MatrixOrder order = MatrixOrder::out_in;

  // Adds `onto_NO`, a residual, if it is defined.
  at::Tensor forward(const at::Tensor& x_NI, const at::Tensor& onto_NO = {}) const;
  at::Tensor input_gradient(const at::Tensor& g_NO) const;
  void add_gradients(const at::Tensor& x_NI, const at::Tensor& g_NO) const;
};

// A Linear whose input columns may be cut over the ranks of the tensor axis. Then the depth of its product is cut, too.
// Forward returns this rank's share of the output rows, with bias and residual added. (If the output columns are cut, use a
// plain Linear on all rows.)
struct DeepLinear : Linear {
  SequenceParallel shares;

  at::Tensor forward(const at::Tensor& x_NI, const at::Tensor& onto_SO = {}) const;
  // `g_NO` has all rows. The bias gradient counts only this rank's share of the rows.
  void add_gradients(const at::Tensor& x_NI, const at::Tensor& g_NO) const;
};

}  // namespace megalith

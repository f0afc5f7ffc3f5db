// The places of a model that apply dropout. They are numbered, so that no two places share random numbers.
#pragma once
#include "model/kernels/dropout.h"
#include "model/local_rows.h"

namespace megalith {

struct DropPlace {
  double probability = 0;
  RandomUse use = RandomUse::residual_dropout;
  int64_t layer = 0;
  int64_t place = 0;  // number of the place within its layer, below 4

  bool drops(const Pass& pass) const { return probability > 0 && pass.dropout; }

  // Returns residual + dropout(branch). `branch(onto)` computes the branch, and adds `onto` if it is defined.
  template <class Branch>
  at::Tensor add(const at::Tensor& residual_NC, const Pass& pass, const Branch& branch) const {
    if (!drops(pass)) return branch(residual_NC);
    at::Tensor y_NC = branch(at::Tensor());
    drop(y_NC, pass);
    return y_NC.add_(residual_NC);
  }

  // Drops elements of x_NC in place. Does nothing if the pass does not train.
  void drop(at::Tensor& x_NC, const Pass& pass) const {
    if (!drops(pass)) return;
    for_each_row_run(pass, [&](int64_t row, int64_t global_row, int64_t rows) {
      at::Tensor x = x_NC.narrow(0, row, rows);
      kernels::dropout_in_place(x, {pass.seed, use, static_cast<uint64_t>(layer * 4 + place), pass.step,
                                    global_row * x_NC.size(-1), probability});
    });
  }
  // Returns the gradient of the input. It is a copy only if dropout is on.
  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass) const {
    if (!drops(pass)) return g_NC;
    at::Tensor g = g_NC.clone();
    drop(g, pass);
    return g;
  }
};

}  // namespace megalith

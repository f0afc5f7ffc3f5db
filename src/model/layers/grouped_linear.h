#pragma once
#include <span>
#include <vector>

#include "model/layers/linear.h"

namespace megalith {

// One Linear for each expert, on rows sorted by expert. The rows of expert e are [begin[e], begin[e + 1]).
struct GroupedLinear {
  std::vector<Weight> weights;  // [out, in] each

  at::Tensor forward(const at::Tensor& x_RI, std::span<const int64_t> begin) const;
  at::Tensor input_gradient(const at::Tensor& g_RO, std::span<const int64_t> begin) const;
  void add_gradients(const at::Tensor& x_RI, const at::Tensor& g_RO, std::span<const int64_t> begin) const;
};

}  // namespace megalith

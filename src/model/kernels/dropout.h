// Counter-based dropout: whether an element is dropped depends only on (seed, site, step, its global index). So the mask is
// never stored. It is the same in a recomputation and for every cut of the batch.
#pragma once
#include <ATen/core/Tensor.h>

#include "base/philox.h"

namespace megalith::kernels {

struct DropoutSite {
  uint64_t seed = 0;
  RandomUse use = RandomUse::residual_dropout;
  uint64_t item = 0;         // layer and place
  int64_t step = 0;
  int64_t first_element = 0; // global index of the tensor's first element
  double probability = 0;
};

// x *= keep / (1 - p), in place. Used on activations and, with the same site, on gradients.
void dropout_in_place(at::Tensor& x, const DropoutSite& site);

// Writes the factors that dropout_in_place multiplies with, 0 or 1/(1-p), for elements [begin, begin + n).
void dropout_factors(const DropoutSite& site, int64_t begin, int64_t n, float* out);

}  // namespace megalith::kernels

// What a router is asked: a layer's logits, the groups of the micro-batch, and random numbers keyed by a token's place in
// the batch of the whole step, so that no cut of it changes them.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/pass.h"
#include "model/routing/router.h"

namespace megalith {

// Borrows `experts` and `logits_NE`; `bias_E` is the sigmoid router's, else undefined.
template <class Real>
RouterInput<Real> router_input_of(const Experts& experts, const at::Tensor& logits_NE, const at::Tensor& bias_E,
                                  int64_t layer, const Pass& pass);

// x, each element multiplied with a number from 1 - jitter to 1 + jitter.
at::Tensor jittered(const at::Tensor& x_NC, double jitter, int64_t layer, const Pass& pass);

}  // namespace megalith

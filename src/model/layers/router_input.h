// The input of a router: the logits of a layer, the groups of the micro-batch, and random numbers. Random numbers are keyed
// by a token's place in the batch of the whole step, so cutting the batch does not change them.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/pass.h"
#include "model/routing/router.h"

namespace megalith {

// Borrows `experts` and `logits_NE`. `bias_E` is defined only for the sigmoid router.
template <class Real>
RouterInput<Real> router_input_of(const Experts& experts, const at::Tensor& logits_NE, const at::Tensor& bias_E,
                                  int64_t layer, const Pass& pass);

// Returns x with each element multiplied by a random number from 1 - jitter to 1 + jitter.
at::Tensor jittered(const at::Tensor& x_NC, double jitter, int64_t layer, const Pass& pass);

}  // namespace megalith

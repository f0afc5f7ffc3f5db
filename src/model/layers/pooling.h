// The representation of a sequence: the mean of some of its outputs. All pooling modes are means over a range of positions.
// Ranks that share the rows of a sequence add their parts.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/exchange.h"
#include "model/pass.h"

namespace megalith {

// Returns the pooled positions of a sequence of `tokens` tokens.
PositionRange pooled_positions(Pooling pooling, int64_t tokens);

// Returns one row per sequence, in float32, the same on all ranks of the pass. x_NC has the rows of this rank.
at::Tensor pool(const at::Tensor& x_NC, const Pass& pass, Pooling pooling, const Exchanges& exchanges);
// Returns the gradient of x_NC. g_BC is the gradient of what `pool` returned.
at::Tensor pool_backward(const at::Tensor& g_BC, const at::Tensor& x_NC, const Pass& pass, Pooling pooling);

}  // namespace megalith

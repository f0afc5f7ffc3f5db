// InfoNCE over the pairs of a batch: each anchor must find its own positive among the positives and hard negatives of all
// pairs, by cosine similarity. The loss needs the representations of the whole batch, and only them.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "data/batch.h"
#include "model/block.h"

namespace megalith {

// x_SC has a row for every sequence of the batch, sample by sample. `text_S` identifies their texts: a candidate is no
// negative if its text is that of the anchor or of the positive. Returns the sum of the losses and the number of pairs.
// `g_SC`, if not null, receives the gradient of that sum times `scale`.
LossSums contrastive_loss(const at::Tensor& x_SC, std::span<const uint64_t> text_S, const Comparison& form, double scale,
                          at::Tensor* g_SC);

}  // namespace megalith

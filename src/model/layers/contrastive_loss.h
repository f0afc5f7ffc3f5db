// InfoNCE over the pairs of a batch: each anchor must find its own positive among the positives and hard negatives of all
// pairs, by cosine similarity. The loss needs the representations of the whole batch, and only them.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "model/block.h"

namespace megalith {

struct ContrastiveLoss {
  int64_t columns = 2;         // sequences of a pair: anchor, positive, hard negatives
  double temperature = 0.05;   // similarities are divided by it
  bool symmetric = false;      // positives must find their anchors, too; the loss is the mean of both directions

  // x_SC has a row for every sequence of the batch, pair by pair. `text_S` identifies their texts: a candidate is no
  // negative if its text is that of the anchor or of the positive. Returns the sum of the losses and the number of pairs.
  // `g_SC`, if not null, receives the gradient of that sum times `scale`. Works on chunks of anchors, so the similarities of
  // all pairs never exist at once.
  LossSums run(const at::Tensor& x_SC, std::span<const uint64_t> text_S, double scale, at::Tensor* g_SC) const;

 private:
  struct Side;
  void score(const Side& queries, const Side& candidates, double scale, LossSums& sums, bool gradient) const;
};

}  // namespace megalith

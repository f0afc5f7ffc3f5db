// What the experts of a layer cost a micro-batch: the feed-forward half's part of a layer's facts.
#pragma once
#include <cstdint>
#include <functional>

#include "layout/split.h"

namespace megalith {

struct ExpertFacts {
  double flop = 0;               // forward
  double output_flop = 0;        // of it, what only the output needs
  int64_t kept_bytes = 0;        // for backward: pre-activations and logits,
  int64_t plain_bytes = 0;       // and the same as they are computed with
  int64_t workspace_bytes = 0;   // backward: most besides those, the norm's output and the gradients in and out
  int64_t deferred_bytes = 0;    // what weight products wait with, where they are put off,
  int64_t deferring_bytes = 0;   // and the most besides what was kept, the norm's output and the gradient that comes in
  int64_t touched_bytes = 0;     // forward, besides products' own
  int64_t sent_bytes = 0;        // one way, to the experts of other ranks
};

// `tokens`: of so many sequences, those here; `e`: bytes of a number as it is computed with; `row_bytes`: of a row of so
// many as it is kept. Where experts are spread over ranks, work is what comes on average and memory what may come at most.
ExpertFacts expert_facts(const ModelShape& shape, const Split& split, int64_t sequences, int64_t length, int64_t tokens,
                         int64_t e, const std::function<int64_t(int64_t)>& row_bytes);

}  // namespace megalith

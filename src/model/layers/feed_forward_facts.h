// What the feed-forward half of a layer costs a micro-batch on one rank. Counts follow the code of feed_forward.cpp and of
// the layers around it line by line: a tensor lives to the end of its scope.
#pragma once
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

struct HalfFacts {
  bool routes = false;            // tokens go to experts
  int64_t weights = 0;            // elements of the matrices that every row is multiplied with
  double flop = 0;                // forward, of all other products
  BlockWork output;             // forward: what only the output needs
  int64_t touched_bytes = 0;      // forward: memory traffic besides the products
  int64_t saved_bytes = 0;        // pre-activations as they are kept for backward
  int64_t plain_bytes = 0;        // and as they are computed with
  int64_t workspace_bytes = 0;    // backward: most besides those, the norm's output and the gradients in and out
  int64_t activation_bytes = 0;   // forward: most besides pre-activations
  // Where weight gradients are deferred:
  int64_t deferred_bytes = 0;     // the inputs that they wait with
  int64_t left_bytes = 0;         // of those, what only this half holds
  int64_t deferring_bytes = 0;    // backward: most besides what was kept, the norm's output and the gradient that comes in
  int64_t unpacked_bytes = 0;     // pre-activations, where they were kept packed
  int64_t weight_rows = 0;        // of the largest weight gradient; its columns are hidden
  // Exchanges:
  int64_t expert_bytes = 0;       // one way, to the experts of other ranks
  int64_t context_bytes = 0;      // forward, along the context axis
};

HalfFacts gelu_facts(const RankSizes& r);
HalfFacts swiglu_facts(const RankSizes& r);

}  // namespace megalith

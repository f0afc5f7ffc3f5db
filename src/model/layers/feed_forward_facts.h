// Costs of the feed-forward half of a layer for a micro-batch on one rank. The counts follow the code of feed_forward.cpp
// and of the layers around it line by line: a tensor lives to the end of its scope.
#pragma once
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

struct HalfFacts {
  bool routes = false;            // tokens go to experts
  int64_t weights = 0;            // elements of the matrices that every row is multiplied with
  double flop = 0;                // forward: operations of all other products
  BlockWork output;             // forward: work that only the output needs
  int64_t touched_bytes = 0;      // forward: memory traffic besides the products
  int64_t saved_bytes = 0;        // pre-activations as they are kept for backward
  int64_t plain_bytes = 0;        // pre-activations unpacked
  int64_t workspace_bytes = 0;    // backward: peak without pre-activations, norm's output, incoming and outgoing gradient
  int64_t activation_bytes = 0;   // forward: peak without pre-activations
  // If weight gradients are deferred:
  int64_t deferred_bytes = 0;     // tensors that wait for the weight gradients
  int64_t left_bytes = 0;         // the part of these tensors that only this half holds
  int64_t deferring_bytes = 0;    // backward: peak without kept tensors, the norm's output and the incoming gradient
  int64_t unpacked_bytes = 0;     // unpacked pre-activations, if they were kept packed
  int64_t weight_rows = 0;        // rows of the largest weight gradient; it has `hidden` columns
  // Exchanges:
  int64_t expert_bytes = 0;       // sent to the experts of other ranks, one way
  int64_t context_bytes = 0;      // sent along the context axis in forward
};

HalfFacts gelu_facts(const RankSizes& r);
HalfFacts swiglu_facts(const RankSizes& r);

}  // namespace megalith

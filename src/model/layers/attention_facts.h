// Costs of attention for a micro-batch on one rank, in each form of the context axis (ring, Ulysses).
#pragma once
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

// Operations of forward: the scores and the weighted sum of the values.
double score_flop(const RankSizes& r);
// Bytes of q, k, v and log-sum-exp as they are kept for backward.
int64_t scored_bytes(const RankSizes& r);
// Bytes that backward needs besides the inputs of attention, the gradient of its output, and the gradients of q, k, v.
int64_t context_workspace(const RankSizes& r);
// Bytes of the float32 copies with a 16-bit type: q, k, v, the output and its gradient, and the gradients of q, k, v.
inline int64_t wide_attention_bytes(const RankSizes& r) { return r.e < 4 ? 4 * r.N * 2 * (r.X + r.A) : 0; }
// The exchanges of attention along the context axis.
struct ContextExchanges {
  ExchangeFacts forward, backward;
};
ContextExchanges context_exchanges(const RankSizes& r);

}  // namespace megalith

// What attention costs a micro-batch on one rank, in each form of the context axis (ring, Ulysses).
#pragma once
#include "families/rank_sizes.h"
#include "schedule/schedule.h"

namespace megalith {

// Forward: scores and the sum that they weight.
double score_flop(const RankSizes& r);
// q, k, v and log-sum-exp as they are kept for backward.
int64_t scored_bytes(const RankSizes& r);
// Backward: what attention has besides its inputs, its output's gradient and that of q, k, v.
int64_t context_workspace(const RankSizes& r);
// 16 bits: q, k, v, the output and its gradient, and the gradients of q, k, v, in float32.
inline int64_t wide_attention_bytes(const RankSizes& r) { return r.e < 4 ? 4 * r.N * 2 * (r.X + r.A) : 0; }
// What attention exchanges along the context axis.
struct ContextExchanges {
  ExchangeFacts forward, backward;
};
ContextExchanges context_exchanges(const RankSizes& r);

}  // namespace megalith

// Attention in tiles, straight on q, k, v where the projection left them: memory is two tiles of scores a thread, and
// the gradients go straight to their places. Grouped-query heads are read in place, never repeated.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/kernels/dropout.h"

namespace megalith::kernels {

// Which keys each query sees: one contiguous range, whatever the rule behind it (causal, prefix, documents, ...).
struct Sight {
  std::vector<int64_t> begin, end;  // sequences x queries: keys [begin, end) of the query's sequence; may be empty
};

// Dropout of scores, keyed by their place among all scores [sequences, heads, queries, keys], of which the tensors at
// hand may be a part. 0 heads, queries or keys: as many as the tensors have.
struct ScoreDropout : DropoutSite {
  ScoreDropout(const DropoutSite& site = {}) : DropoutSite(site) {}
  int64_t heads = 0, first_head = 0;
  int64_t queries = 0, first_query = 0;
  int64_t keys = 0, first_key = 0;
};

// q and o are [B, H, Tq, D], k and v [B, KV, Tk, D]: views with any strides but the last, which is 1. Query head h
// reads key head h / (H / KV). lse_BHT is the log-sum-exp of the scaled scores, float32 (float64 for float64).
// Dropout: probability 0 is none; first_element is that of sequence 0 among all scores.
// Writes o; returns lse_BHT. 16-bit operands are computed in float32. A query that sees nothing has o = 0 and the
// log-sum-exp minus infinity.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight,
                     const ScoreDropout& dropout, at::Tensor o);
// More keys for queries that have seen others: o and lse_BHT become those of all. Not for 16 bits.
void attention_onto(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight,
                    const ScoreDropout& dropout, at::Tensor o, at::Tensor lse_BHT);
struct QueryKeyValue {
  at::Tensor q, k, v;
};
struct AttentionOutput {
  at::Tensor o, lse_BHT;
};
// Writes `gradients`, which have the shapes of `in`.
void attention_backward(const at::Tensor& g, const QueryKeyValue& in, const AttentionOutput& out, const Sight& sight,
                        const ScoreDropout& dropout, const QueryKeyValue& gradients);
// The same for some of the keys that `out` was computed from: adds to `gradients`. Not for 16 bits.
void attention_backward_onto(const at::Tensor& g, const QueryKeyValue& in, const AttentionOutput& out, const Sight& sight,
                             const ScoreDropout& dropout, const QueryKeyValue& gradients);

// The same in plain ATen, all scores at once: the kernel's oracle, and what other devices run. No dropout.
std::tuple<at::Tensor, at::Tensor> attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                  const Sight& sight);
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_aten_backward(const at::Tensor& g, const at::Tensor& q,
                                                                       const at::Tensor& k, const at::Tensor& v,
                                                                       const at::Tensor& o,
                                                                       const at::Tensor& lse_BHT,
                                                                       const Sight& sight);

}  // namespace megalith::kernels

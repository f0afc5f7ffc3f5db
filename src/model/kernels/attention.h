// Attention in tiles. It reads q, k, v where the projection wrote them, and writes gradients directly to their places. It
// needs memory for at most two tiles of scores per thread. Grouped-query heads are read in place, never repeated.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/kernels/dropout.h"

namespace megalith::kernels {

// The keys that each query sees: one contiguous range under every rule (causal, prefix, documents, ...).
struct Sight {
  std::vector<int64_t> begin, end;  // sequences x queries: keys [begin, end) of the query's sequence; may be empty
};

// Dropout of scores, keyed by their index among all scores [sequences, heads, queries, keys]. The tensors of a call may hold
// only a part of these. If heads, queries or keys is 0, the tensors have all of them.
struct ScoreDropout : DropoutSite {
  ScoreDropout(const DropoutSite& site = {}) : DropoutSite(site) {}
  int64_t heads = 0, first_head = 0;
  int64_t queries = 0, first_query = 0;
  int64_t keys = 0, first_key = 0;
};

// q and o are [B, H, Tq, D], k and v are [B, KV, Tk, D]. They are views with any strides, except that the last stride is 1.
// Query head h reads key head h / (H / KV). Writes o, and returns lse_BHT: the log-sum-exp of the scaled scores, in float32
// (float64 for float64). 16-bit operands are computed in float32. A query that sees no key gets o = 0 and a log-sum-exp of
// minus infinity. A dropout probability of 0 means no dropout. `first_element` of `dropout` is the index of sequence 0 among
// all scores.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight,
                     const ScoreDropout& dropout, at::Tensor o);
// Adds more keys for queries that have already seen others: updates o and lse_BHT to those of all keys. Not for 16 bits.
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

// The same in plain ATen, with all scores at once and without dropout. Used as the kernel's oracle and on other devices.
std::tuple<at::Tensor, at::Tensor> attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                  const Sight& sight);
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_aten_backward(const at::Tensor& g, const at::Tensor& q,
                                                                       const at::Tensor& k, const at::Tensor& v,
                                                                       const at::Tensor& o,
                                                                       const at::Tensor& lse_BHT,
                                                                       const Sight& sight);

}  // namespace megalith::kernels

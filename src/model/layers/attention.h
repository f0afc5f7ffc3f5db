// Multi-head attention on q, k, v that are side by side in one matrix. cached_attention.cpp has attention over a cache.
// ring_attention.cpp and ulysses_attention.cpp have attention over sequences that are cut along the context axis.
#pragma once
#include <ATen/core/Tensor.h>

#include "families/model_shape.h"
#include "model/exchange.h"
#include "model/kernels/attention.h"
#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

struct Attention {
  int64_t heads = 0;      // query heads on this rank
  int64_t kv_heads = 0;   // divides heads; smaller than heads: grouped-query attention
  int64_t head_dim = 0;
  Rope rope;              // applied to q and k; theta 0: not applied
  double dropout = 0;     // on the probabilities
  int64_t layer = 0;      // keys the random numbers of dropout; index in the cache
  int64_t all_heads = 0;  // query heads on all ranks; those of this rank begin at first_head; 0: this rank has all
  int64_t first_head = 0;
  Exchange* context = nullptr;  // null: sequences are not cut
  ContextForm form = ContextForm::ring;

  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }

  // Takes qkv_NX as the projection made it (and rotates it in place). Returns [N, heads * head_dim]. If `tape` is not null,
  // keeps there qkv, log-sum-exp and output, in this order. So backward takes the output first.
  at::Tensor forward(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const;
  // The same for sequences that continue after the cached positions. Adds their keys and values to the cache.
  at::Tensor forward_cached(at::Tensor qkv_NX, const Pass& pass) const;
  // Returns the gradient of qkv as the projection made it. `output_NC` is the output of forward. The caller has already
  // taken it from the tape.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const;

 private:
  at::Tensor by_head(const at::Tensor& x_NC, const Pass& pass) const;  // a view as [B, heads, T, D]
  kernels::ScoreDropout dropout_of(const Pass& pass) const;
  at::Tensor forward_ring(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const;
  at::Tensor backward_ring(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const;
  at::Tensor forward_ulysses(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const;
  at::Tensor backward_ulysses(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const;
};

// Returns the attention of a layer on one rank.
Attention attention_of(const ModelShape& shape, const Exchanges& exchanges, int64_t layer);

// Returns which keys the queries see. Covers whole sequences, even if this rank has only a part.
kernels::Sight sight_of(const Pass& pass);

}  // namespace megalith

// Multi-head attention on q, k, v lying side by side in one matrix; over a cache in cached_attention.cpp, over sequences
// that are cut along the context axis in ring_attention.cpp and ulysses_attention.cpp.
#pragma once
#include <ATen/core/Tensor.h>

#include "families/model_shape.h"
#include "model/exchange.h"
#include "model/kernels/attention.h"
#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

struct Attention {
  int64_t heads = 0;      // here
  int64_t kv_heads = 0;   // divides heads; fewer: grouped-query attention
  int64_t head_dim = 0;
  Rope rope;              // of q and k; theta 0: none
  double dropout = 0;     // on the probabilities
  int64_t layer = 0;      // keys dropout; place in the cache
  int64_t all_heads = 0;  // of all ranks, among which those here begin at first_head; 0: these are all
  int64_t first_head = 0;
  Exchange* context = nullptr;  // where sequences are cut
  ContextForm form = ContextForm::ring;

  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }

  // qkv_NX as the projection leaves it (rotated in place); returns [N, heads * head_dim]. Leaves on the tape,
  // where one is given: qkv, log-sum-exp, output (so the output is the first that backward takes).
  at::Tensor forward(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const;
  // The same for sequences that go on where the cache ends; puts their keys and values there.
  at::Tensor forward_cached(at::Tensor qkv_NX, const Pass& pass) const;
  // Gradient of qkv as the projection left it. `output_NC` is forward's, already taken from the tape.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const;

 private:
  at::Tensor by_head(const at::Tensor& x_NC, const Pass& pass) const;  // as [B, heads, T, D], a view
  kernels::ScoreDropout dropout_of(const Pass& pass) const;
  at::Tensor forward_ring(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const;
  at::Tensor backward_ring(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const;
  at::Tensor forward_ulysses(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const;
  at::Tensor backward_ulysses(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const;
};

// The attention of a layer on one rank.
Attention attention_of(const ModelShape& shape, const Exchanges& exchanges, int64_t layer);

// Which keys of their whole sequence the queries of whole sequences see.
kernels::Sight sight_of(const Pass& pass);

}  // namespace megalith

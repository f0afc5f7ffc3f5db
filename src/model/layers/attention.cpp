#include "model/layers/attention.h"

#include <algorithm>

#include "model/kernels/attention.h"
#include "model/kernels/rope.h"
#include "model/positions.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

struct Heads {
  at::Tensor q, k, v;  // [B, heads, T, D]; k and v with kv_heads
};

// Returns views, not copies. Heads stay interleaved in memory, because the kernels take strides.
Heads split(const Attention& a, const at::Tensor& qkv_NX, const Pass& pass) {
  at::Tensor x = qkv_NX.view({pass.sequences, pass.length, a.heads + 2 * a.kv_heads, a.head_dim}).transpose(1, 2);
  return {x.narrow(1, 0, a.heads), x.narrow(1, a.heads, a.kv_heads), x.narrow(1, a.heads + a.kv_heads, a.kv_heads)};
}

}  // namespace

kernels::Sight sight_of(const Pass& pass) {
  const int64_t B = pass.sequences, T = pass.length;
  kernels::Sight sight{std::vector<int64_t>(static_cast<size_t>(B * T), 0),
                       std::vector<int64_t>(static_cast<size_t>(B * T))};
  for (int64_t b = 0; b < B; b++)
    for (int64_t t = 0; t < T; t++) {
      const int64_t causal = t + 1;
      sight.end[b * T + t] = pass.visibility == Visibility::all      ? T
                             : pass.visibility == Visibility::prefix ? std::max(causal, pass.prefix_B[b])
                                                                     : causal;
    }
  if (!pass.document_begin_N.defined()) return sight;
  const int64_t* begin = pass.document_begin_N.const_data_ptr<int64_t>();
  for (int64_t b = 0; b < B; b++) {
    int64_t end = T;  // end of the document that position t is in
    for (int64_t t = T - 1; t >= 0; t--) {
      if (t + 1 < T && begin[b * T + t + 1] == t + 1) end = t + 1;
      sight.begin[b * T + t] = begin[b * T + t];
      sight.end[b * T + t] = std::min(sight.end[b * T + t], end);
    }
  }
  return sight;
}

Attention attention_of(const ModelShape& shape, const Exchanges& exchanges, int64_t layer) {
  const int64_t tensor = exchanges.mesh.size(Axis::tensor), heads = shape.heads / tensor;
  return {.heads = heads,
          .kv_heads = shape.kv_heads / tensor,
          .head_dim = shape.head_dim(),
          .dropout = shape.dropout.attention,
          .layer = layer,
          .all_heads = shape.heads,
          .first_head = exchanges.mesh.coordinate(Axis::tensor) * heads,
          .context = exchanges.context,
          .form = exchanges.mesh.layout().context_form};
}

kernels::ScoreDropout Attention::dropout_of(const Pass& pass) const {
  if (!pass.dropout) return {};
  const int64_t all = all_heads ? all_heads : heads;
  kernels::ScoreDropout of(
      kernels::DropoutSite{pass.seed, RandomUse::attention_dropout, static_cast<uint64_t>(layer), pass.step,
                           pass.first_sequence * all * pass.length * pass.length, dropout});
  of.heads = all;
  of.first_head = first_head;
  of.queries = of.keys = pass.length;
  return of;
}

at::Tensor Attention::by_head(const at::Tensor& x_NC, const Pass& pass) const {
  return x_NC.view({pass.sequences, pass.length_here(), heads, head_dim}).transpose(1, 2);
}

at::Tensor Attention::forward(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const {
  if (pass.cache) return forward_cached(std::move(qkv_NX), pass);
  if (context && form == ContextForm::ulysses) return forward_ulysses(std::move(qkv_NX), pass, tape);
  if (context) return forward_ring(std::move(qkv_NX), pass, tape);
  if (rope.theta > 0)
    kernels::rope_in_place(qkv_NX, heads + kv_heads, head_dim, positions_of(pass), rope, false);
  auto [q, k, v] = split(*this, qkv_NX, pass);
  at::Tensor output_NC = tensor::empty({pass.tokens(), heads * head_dim}, qkv_NX.options());
  at::Tensor lse = kernels::attention(q, k, v, sight_of(pass), dropout_of(pass), by_head(output_NC, pass));
  if (tape) {
    tape->keep(std::move(qkv_NX));
    tape->keep(std::move(lse));
    tape->keep(output_NC);
  }
  return output_NC;
}

at::Tensor Attention::backward(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const {
  if (context && form == ContextForm::ulysses) return backward_ulysses(g_NC, output_NC, pass, tape);
  if (context) return backward_ring(g_NC, output_NC, pass, tape);
  at::Tensor lse = tape.take(), qkv_NX = tape.take();
  auto [q, k, v] = split(*this, qkv_NX, pass);
  at::Tensor g_qkv_NX = tensor::empty(qkv_NX.sizes(), qkv_NX.options());
  auto [gq, gk, gv] = split(*this, g_qkv_NX, pass);
  kernels::attention_backward(by_head(g_NC, pass), {q, k, v}, {by_head(output_NC, pass), lse}, sight_of(pass),
                              dropout_of(pass), {gq, gk, gv});
  if (rope.theta > 0)
    kernels::rope_in_place(g_qkv_NX, heads + kv_heads, head_dim, positions_of(pass), rope, true);
  return g_qkv_NX;
}

}  // namespace megalith

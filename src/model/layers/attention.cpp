#include "model/layers/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>

#include "model/kernels/rope.h"
#include "model/kernels/tiled_attention.h"

namespace megalith {
namespace {

struct Heads {
  at::Tensor q, k, v;  // [B, heads, T, D]; k and v with kv_heads
};

// Views, no copies: heads stay interleaved in memory and the kernels take strides.
Heads split(const Attention& a, const at::Tensor& qkv_NX, const Pass& pass) {
  at::Tensor x = qkv_NX.view({pass.sequences, pass.length, a.heads + 2 * a.kv_heads, a.head_dim}).transpose(1, 2);
  return {x.narrow(1, 0, a.heads), x.narrow(1, a.heads, a.kv_heads), x.narrow(1, a.heads + a.kv_heads, a.kv_heads)};
}

// [B, kv_heads, T, D] -> [B, heads, T, D]: query head h reads key head h / (heads / kv_heads).
at::Tensor repeat(const Attention& a, const at::Tensor& x) {
  if (a.heads == a.kv_heads) return x;
  int64_t group = a.heads / a.kv_heads;
  return x.unsqueeze(2).expand({x.size(0), a.kv_heads, group, x.size(2), x.size(3)}).reshape(
      {x.size(0), a.heads, x.size(2), x.size(3)});
}

// The gradient's way back: sums over each group.
at::Tensor collect(const Attention& a, const at::Tensor& g) {
  if (a.heads == a.kv_heads) return g;
  return g.reshape({g.size(0), a.kv_heads, a.heads / a.kv_heads, g.size(2), g.size(3)}).sum(2);
}

bool takes_flash(const Attention& a, const Pass& pass) {
  bool drops = a.dropout > 0 && pass.dropout;
  return !drops && pass.visibility != Visibility::prefix;
}

kernels::AttentionRule rule_for(const Attention& a, const Pass& pass, int64_t keys) {
  kernels::AttentionRule rule;
  rule.visibility = pass.visibility;
  rule.prefix_B = pass.prefix_B;
  if (pass.dropout)
    rule.dropout = {pass.seed, RandomUse::attention_dropout, static_cast<uint64_t>(a.layer), pass.step,
                    pass.first_sequence * a.heads * pass.length * keys, a.dropout};
  return rule;
}

}  // namespace

at::Tensor Attention::forward(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const {
  if (pass.cache) return forward_cached(std::move(qkv_NX), pass);
  if (rope.theta > 0)
    kernels::rope_in_place(qkv_NX, heads + kv_heads, head_dim, pass.length, 0, rope, false);
  auto [q, k, v] = split(*this, qkv_NX, pass);
  at::Tensor o, lse;
  if (takes_flash(*this, pass))
    std::tie(o, lse) = at::_scaled_dot_product_flash_attention_for_cpu(q, repeat(*this, k), repeat(*this, v), 0.0,
                                                                       pass.visibility == Visibility::causal);
  else
    std::tie(o, lse) = kernels::tiled_attention(q, repeat(*this, k), repeat(*this, v), rule_for(*this, pass, k.size(2)));
  at::Tensor output_NC = o.transpose(1, 2).reshape({pass.tokens(), heads * head_dim});
  if (tape) {
    tape->keep(std::move(qkv_NX));
    tape->keep(std::move(lse));
    tape->keep(output_NC);
  }
  return output_NC;
}

at::Tensor Attention::backward(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass, Tape& tape) const {
  at::Tensor lse = tape.take(), qkv_NX = tape.take();
  auto [q, k, v] = split(*this, qkv_NX, pass);
  auto by_head = [&](const at::Tensor& x_NC) {
    return x_NC.view({pass.sequences, pass.length, heads, head_dim}).transpose(1, 2);
  };
  at::Tensor gq, gk, gv;
  if (takes_flash(*this, pass))
    std::tie(gq, gk, gv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        by_head(g_NC), q, repeat(*this, k), repeat(*this, v), by_head(output_NC), lse, 0.0,
        pass.visibility == Visibility::causal);
  else
    std::tie(gq, gk, gv) = kernels::tiled_attention_backward(by_head(g_NC), q, repeat(*this, k), repeat(*this, v),
                                                             by_head(output_NC), lse, rule_for(*this, pass, k.size(2)));
  at::Tensor g_qkv_NX = at::empty(qkv_NX.sizes(), qkv_NX.options());
  auto [to_q, to_k, to_v] = split(*this, g_qkv_NX, pass);
  to_q.copy_(gq);
  to_k.copy_(collect(*this, gk));
  to_v.copy_(collect(*this, gv));
  if (rope.theta > 0)
    kernels::rope_in_place(g_qkv_NX, heads + kv_heads, head_dim, pass.length, 0, rope, true);
  return g_qkv_NX;
}

}  // namespace megalith

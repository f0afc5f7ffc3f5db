// Attention of new tokens over a cache of earlier ones: generation. A sequence's numbers do not depend on the others of
// its batch.
#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/empty.h>

#include "model/kernels/cached_attention.h"
#include "model/kernels/rope.h"
#include "model/layers/attention.h"

namespace megalith {
namespace {

constexpr int64_t kMany = 16;  // queries from which LibTorch's kernel is the faster one

// A prompt that begins its sequence is plain causal attention. `x`: [heads + 2 kv_heads, T, D].
at::Tensor flash(const Attention& a, const at::Tensor& x) {
  const int64_t group = a.heads / a.kv_heads;
  auto repeated = [&](int64_t begin) {
    at::Tensor part = x.narrow(0, begin, a.kv_heads).unsqueeze(1);
    return part.expand({a.kv_heads, group, x.size(1), a.head_dim}).reshape({1, a.heads, x.size(1), a.head_dim});
  };
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
                         x.narrow(0, 0, a.heads).unsqueeze(0), repeated(a.heads), repeated(a.heads + a.kv_heads), 0.0,
                         /*is_causal=*/true))
      .squeeze(0);
}

}  // namespace

at::Tensor Attention::forward_cached(at::Tensor qkv_NX, const Pass& pass) const {
  KeyValueCache::Layer& past = pass.cache->layers.at(static_cast<size_t>(layer));
  const int64_t T = pass.length;
  at::Tensor output_NC = at::empty({pass.tokens(), heads * head_dim}, qkv_NX.options());
  for (int64_t b = 0; b < pass.sequences; b++) {
    const int64_t slot = pass.cache->active[static_cast<size_t>(b)], first = pass.cache->first_position(b);
    at::Tensor rows_TX = qkv_NX.narrow(0, b * T, T);
    if (rope.theta > 0) kernels::rope_in_place(rows_TX, heads + kv_heads, head_dim, T, first, rope, false);
    at::Tensor x = rows_TX.view({T, heads + 2 * kv_heads, head_dim}).transpose(0, 1);  // [all heads, T, D]
    at::Tensor k = past.keys.select(0, slot).narrow(1, 0, first + T);
    at::Tensor v = past.values.select(0, slot).narrow(1, 0, first + T);
    k.narrow(1, first, T).copy_(x.narrow(0, heads, kv_heads));
    v.narrow(1, first, T).copy_(x.narrow(0, heads + kv_heads, kv_heads));
    at::Tensor out = output_NC.narrow(0, b * T, T).view({T, heads, head_dim}).transpose(0, 1);
    if (first == 0 && T >= kMany)
      out.copy_(flash(*this, x));
    else
      kernels::cached_attention(x.narrow(0, 0, heads), k, v, first, out);
  }
  return output_NC;
}

}  // namespace megalith

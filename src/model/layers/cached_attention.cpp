// Attention of new tokens over a cache of earlier tokens, for generation. The results of a sequence do not depend on the
// other sequences of the batch.

#include "base/error.h"
#include "model/kernels/attention.h"
#include "model/kernels/cached_attention.h"
#include "model/kernels/rope.h"
#include "model/layers/attention.h"
#include "model/positions.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

constexpr int64_t kMany = 16;  // from this many queries on, tiles of products are faster

// Returns the causal sight of `length` new tokens that follow `first` earlier ones.
kernels::Sight sight_after(int64_t first, int64_t length) {
  kernels::Sight sight{std::vector<int64_t>(static_cast<size_t>(length), 0), {}};
  for (int64_t t = 0; t < length; t++) sight.end.push_back(first + t + 1);
  return sight;
}

}  // namespace

at::Tensor Attention::forward_cached(at::Tensor qkv_NX, const Pass& pass) const {
  MEGALITH_ASSERT(!context && (all_heads == 0 || all_heads == heads),
                  "generation does not support layers that are split over ranks");
  KeyValueCache::Layer& past = pass.cache->layers.at(static_cast<size_t>(layer));
  const int64_t T = pass.length;
  at::Tensor output_NC = tensor::empty({pass.tokens(), heads * head_dim}, qkv_NX.options());
  if (rope.theta > 0)
    kernels::rope_in_place(qkv_NX, heads + kv_heads, head_dim, positions_of(pass), rope, false);
  for (int64_t b = 0; b < pass.sequences; b++) {
    const int64_t slot = pass.cache->active[static_cast<size_t>(b)], first = pass.cache->first_position(b);
    at::Tensor rows_TX = qkv_NX.narrow(0, b * T, T);
    at::Tensor x = rows_TX.view({T, heads + 2 * kv_heads, head_dim}).transpose(0, 1);  // [all heads, T, D]
    at::Tensor k = past.keys.select(0, slot).narrow(1, 0, first + T);
    at::Tensor v = past.values.select(0, slot).narrow(1, 0, first + T);
    k.narrow(1, first, T).copy_(x.narrow(0, heads, kv_heads));
    v.narrow(1, first, T).copy_(x.narrow(0, heads + kv_heads, kv_heads));
    at::Tensor out = output_NC.narrow(0, b * T, T).view({T, heads, head_dim}).transpose(0, 1);
    if (T >= kMany)
      kernels::attention(x.narrow(0, 0, heads).unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), sight_after(first, T), {},
                         out.unsqueeze(0));
    else
      kernels::cached_attention(x.narrow(0, 0, heads), k, v, first, out);
  }
  return output_NC;
}

}  // namespace megalith

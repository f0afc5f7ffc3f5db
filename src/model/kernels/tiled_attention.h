// Attention tile by tile over the queries, for what the flash kernel lacks: dropout on the probabilities and
// visibility that differs from sequence to sequence. Memory is one tile of scores; backward rebuilds them.
#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>
#include <vector>

#include "model/kernels/dropout.h"
#include "model/pass.h"

namespace megalith::kernels {

struct AttentionRule {
  Visibility visibility = Visibility::causal;
  std::vector<int64_t> prefix_B;  // Visibility::prefix
  int64_t first_query = 0;        // position of query 0 among the keys (generation with a cache)
  DropoutSite dropout;            // probability 0: none; first_element is that of sequence 0, head 0
};

// q [B,H,Tq,D], k and v [B,H,Tk,D]; (o [B,H,Tq,D] with o.transpose(1,2) contiguous, lse [B,H,Tq] float32).
std::tuple<at::Tensor, at::Tensor> tiled_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                   const AttentionRule& rule);
// (gq, gk, gv).
std::tuple<at::Tensor, at::Tensor, at::Tensor> tiled_attention_backward(const at::Tensor& g, const at::Tensor& q,
                                                                        const at::Tensor& k, const at::Tensor& v,
                                                                        const at::Tensor& o, const at::Tensor& lse,
                                                                        const AttentionRule& rule);

}  // namespace megalith::kernels

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "model/kernels/attention.h"

namespace megalith::kernels {
namespace {

// [B, KV, T, D] -> [B, H, T, D].
at::Tensor repeated(const at::Tensor& x, int64_t heads) {
  const int64_t group = heads / x.size(1);
  return x.unsqueeze(2).expand({x.size(0), x.size(1), group, x.size(2), x.size(3)}).reshape(
      {x.size(0), heads, x.size(2), x.size(3)});
}
at::Tensor summed(const at::Tensor& g, int64_t kv_heads) {
  return g.view({g.size(0), kv_heads, g.size(1) / kv_heads, g.size(2), g.size(3)}).sum(2);
}

// Scaled scores [B, H, Tq, Tk], minus infinity where nothing is seen.
at::Tensor scores(const at::Tensor& q, const at::Tensor& k, const Sight& sight) {
  const int64_t B = q.size(0), Tq = q.size(2), Tk = k.size(2);
  auto column = [&](const std::vector<int64_t>& keys) { return at::tensor(keys).view({B, 1, Tq, 1}).to(q.device()); };
  at::Tensor key = at::arange(Tk, at::kLong).to(q.device());
  at::Tensor hidden = (key < column(sight.begin)).logical_or(key >= column(sight.end));
  at::Tensor s = at::matmul(q, k.transpose(-1, -2)).mul_(1.0 / std::sqrt(static_cast<double>(q.size(3))));
  return s.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                  const Sight& sight) {
  at::Tensor s = scores(q, repeated(k, q.size(1)), sight), lse_BHT = at::logsumexp(s, {-1});
  return {at::matmul(at::exp(s - lse_BHT.unsqueeze(-1)), repeated(v, q.size(1))), lse_BHT};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_aten_backward(const at::Tensor& g, const at::Tensor& q,
                                                                       const at::Tensor& k, const at::Tensor& v,
                                                                       const at::Tensor& o, const at::Tensor& lse_BHT,
                                                                       const Sight& sight) {
  at::Tensor k_H = repeated(k, q.size(1)), v_H = repeated(v, q.size(1));
  at::Tensor p = at::exp(scores(q, k_H, sight) - lse_BHT.unsqueeze(-1));
  at::Tensor dp = at::matmul(g, v_H.transpose(-1, -2)), delta = (g * o).sum(-1, true);
  at::Tensor ds = p * (dp - delta) * (1.0 / std::sqrt(static_cast<double>(q.size(3))));
  return {at::matmul(ds, k_H), summed(at::matmul(ds.transpose(-1, -2), q), k.size(1)),
          summed(at::matmul(p.transpose(-1, -2), g), k.size(1))};
}

}  // namespace megalith::kernels

// ATen forms of the kernels, made of LibTorch functions. They run types and devices that the kernels do not take, and are
// the oracles of the tests. Only this file needs LibTorch's operators, whose headers take seconds to parse.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>

#include "model/kernels/attention.h"
#include "model/kernels/cached_attention.h"
#include "model/kernels/cross_entropy.h"
#include "model/kernels/expert_rows.h"
#include "model/kernels/gelu.h"
#include "model/kernels/layer_norm.h"
#include "model/kernels/rms_norm.h"
#include "model/kernels/swiglu.h"

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

// Returns scaled scores [B, H, Tq, Tk], with minus infinity for keys that a query does not see.
at::Tensor scores(const at::Tensor& q, const at::Tensor& k, const Sight& sight) {
  const int64_t B = q.size(0), Tq = q.size(2), Tk = k.size(2);
  auto column = [&](const std::vector<int64_t>& keys) { return at::tensor(keys).view({B, 1, Tq, 1}).to(q.device()); };
  at::Tensor key = at::arange(Tk, at::kLong).to(q.device());
  at::Tensor hidden = (key < column(sight.begin)).logical_or(key >= column(sight.end));
  at::Tensor s = at::matmul(q, k.transpose(-1, -2)).mul_(1.0 / std::sqrt(static_cast<double>(q.size(3))));
  return s.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

std::string_view aten_name(GeluForm form) { return form == GeluForm::tanh ? "tanh" : "none"; }

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

void cached_attention_plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t first, at::Tensor out) {
  const int64_t heads = q.size(0), queries = q.size(1), keys = k.size(1), group = heads / k.size(0);
  const auto wide = c10::promoteTypes(q.scalar_type(), at::kFloat);
  auto by_query_head = [&](const at::Tensor& x) {
    return x.to(wide).unsqueeze(1).expand({x.size(0), group, keys, x.size(2)}).reshape({heads, keys, x.size(2)});
  };
  at::Tensor scores = at::matmul(q.to(wide), by_query_head(k).transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
  at::Tensor hidden = at::arange(keys, at::kLong).unsqueeze(0).gt((at::arange(queries, at::kLong) + first).unsqueeze(1));
  scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  out.copy_(at::matmul(at::softmax(scores, -1), by_query_head(v)));
}

std::tuple<at::Tensor, at::Tensor> rms_norm_aten(const at::Tensor& x_NC, const at::Tensor& w_C, double eps) {
  at::Tensor wide = x_NC.to(c10::promoteTypes(x_NC.scalar_type(), at::kFloat));
  at::Tensor rstd_N1 = at::rsqrt(at::mean(wide * wide, {-1}, true) + eps);
  return {(wide * rstd_N1).to(x_NC.scalar_type()) * w_C, rstd_N1.squeeze(-1)};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward_aten(const at::Tensor& g_NC, const at::Tensor& x_NC,
                                                          const at::Tensor& rstd_N, const at::Tensor& w_C) {
  auto type = c10::promoteTypes(x_NC.scalar_type(), at::kFloat);
  at::Tensor g = g_NC.to(type), rstd_N1 = rstd_N.unsqueeze(-1), hat = x_NC.to(type) * rstd_N1, gw = g * w_C.to(type);
  at::Tensor gx = rstd_N1 * (gw - hat * at::mean(gw * hat, {-1}, true));
  return {gx.to(x_NC.scalar_type()), at::sum(g * hat, {0})};
}

LayerNormed layer_norm_aten(const at::Tensor& x_NC, const at::Tensor& w_C, const at::Tensor& b_C, double eps) {
  LayerNormed out;
  std::tie(out.y_NC, out.mean_N, out.rstd_N) = at::native_layer_norm(x_NC, {x_NC.size(-1)}, w_C, b_C, eps);
  return out;
}

LayerNormGradients layer_norm_backward_aten(const at::Tensor& g_NC, const at::Tensor& x_NC, const at::Tensor& mean_N,
                                            const at::Tensor& rstd_N, const at::Tensor& w_C, const at::Tensor& onto_NC) {
  LayerNormGradients out;
  std::tie(out.gx_NC, out.gw_C, out.gb_C) = at::native_layer_norm_backward(
      g_NC, x_NC, {x_NC.size(-1)}, mean_N, rstd_N, w_C, at::zeros_like(w_C), {true, true, true});
  if (onto_NC.defined()) out.gx_NC.add_(onto_NC);
  return out;
}

at::Tensor gelu_aten(const at::Tensor& h_NF, GeluForm form) { return at::gelu(h_NF, aten_name(form)); }

void gelu_backward_aten(at::Tensor& h_NF, at::Tensor& g_NF, GeluForm form) {
  at::gelu_backward_out(g_NF, g_NF, h_NF, aten_name(form));
  at::gelu_out(h_NF, h_NF, aten_name(form));
}

at::Tensor swiglu_aten(const at::Tensor& gate_up_N2F) {
  int64_t n = gate_up_N2F.size(1) / 2;
  at::Tensor gate = gate_up_N2F.narrow(1, 0, n);
  return gate * at::sigmoid(gate) * gate_up_N2F.narrow(1, n, n);
}

void swiglu_backward_aten(at::Tensor& gate_up_N2F, at::Tensor& g_NF) {
  int64_t n = gate_up_N2F.size(1) / 2;
  at::Tensor gate = gate_up_N2F.narrow(1, 0, n), up = gate_up_N2F.narrow(1, n, n);
  at::Tensor s = at::sigmoid(gate), silu = gate * s, h = silu * up;
  gate.copy_(g_NF * up * (s + silu * (1 - s)));
  up.copy_(g_NF * silu);
  g_NF.copy_(h);
}

at::Tensor weighted_swiglu_aten(const at::Tensor& gate_up_R2F, const at::Tensor& weight_R) {
  return swiglu_aten(gate_up_R2F).mul_(weight_R.to(gate_up_R2F.scalar_type()).unsqueeze(1));
}

at::Tensor weighted_swiglu_backward_aten(at::Tensor& gate_up_R2F, at::Tensor& g_RF, const at::Tensor& weight_R) {
  const at::Tensor weight = weight_R.to(g_RF.scalar_type()).unsqueeze(1);
  const at::Tensor g = g_RF.clone();
  g_RF.mul_(weight);
  swiglu_backward_aten(gate_up_R2F, g_RF);  // g_RF is h without its weight now
  at::Tensor g_weight_R = at::sum(g.to(weight_R.scalar_type()) * g_RF.to(weight_R.scalar_type()), {1});
  g_RF.mul_(weight);
  return g_weight_R;
}

at::Tensor sigmoid_gradient(const at::Tensor& g, const at::Tensor& s) { return g * s * (1 - s); }

void cross_entropy_aten(at::Tensor& logits_RV, const at::Tensor& targets_R, at::Tensor& loss_R, bool gradient,
                        double scale) {
  at::Tensor log_p = at::log_softmax(logits_RV, -1), targets_R1 = targets_R.unsqueeze(-1);
  loss_R.copy_(at::gather(log_p, -1, targets_R1).squeeze(-1).neg());
  if (!gradient) return;
  at::Tensor p = at::exp(log_p).mul_(scale);
  logits_RV.copy_(at::scatter_add(p, -1, targets_R1, at::full_like(targets_R1, -scale, p.options())));
}

}  // namespace megalith::kernels

#include "model/kernels/tiled_attention.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace megalith::kernels {
namespace {

constexpr int64_t kTile = 128;  // queries at once

// Number of keys that query position i of sequence b sees: they are always the first ones.
int64_t visible_keys(const AttentionRule& rule, int64_t b, int64_t i, int64_t keys) {
  int64_t causal = rule.first_query + i + 1;
  switch (rule.visibility) {
    case Visibility::all: return keys;
    case Visibility::prefix: return std::min(keys, std::max(causal, rule.prefix_B[b]));
    case Visibility::causal: break;
  }
  return std::min(keys, causal);
}

struct Tile {
  int64_t begin, rows, keys;  // queries [begin, begin + rows) see at most the first `keys` keys
};

std::vector<Tile> tiles(const AttentionRule& rule, int64_t sequences, int64_t queries, int64_t keys) {
  std::vector<Tile> out;
  for (int64_t begin = 0; begin < queries; begin += kTile) {
    int64_t rows = std::min(kTile, queries - begin), most = 0;
    for (int64_t b = 0; b < sequences; b++) most = std::max(most, visible_keys(rule, b, begin + rows - 1, keys));
    out.push_back({begin, rows, most});
  }
  return out;
}

// Calls work(row pointer of scores, b, h, query, global element index of the row's first score) for every row.
template <class Scalar, class Work>
void each_row(at::Tensor& scores_ZRK, const Tile& tile, int64_t heads, int64_t queries, int64_t keys, const Work& work) {
  Scalar* data = scores_ZRK.mutable_data_ptr<Scalar>();
  int64_t rows = scores_ZRK.size(0) * tile.rows;
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<float> factors(static_cast<size_t>(tile.keys));
    for (int64_t r = begin; r < end; r++) {
      int64_t z = r / tile.rows, i = tile.begin + r % tile.rows;
      work(data + r * tile.keys, z / heads, z % heads, i, (z * queries + i) * keys, factors.data());
    }
  });
}

at::Tensor three(const at::Tensor& x) {  // [B,H,T,D] -> [BH,T,D]
  return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3)});
}

template <class Scalar>
std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                           const AttentionRule& rule) {
  const int64_t B = q.size(0), H = q.size(1), Tq = q.size(2), D = q.size(3), Tk = k.size(2), Dv = v.size(3);
  const auto scale = static_cast<Scalar>(1.0 / std::sqrt(static_cast<double>(D)));
  at::Tensor out_BTHD = at::empty({B, Tq, H, Dv}, q.options()), lse_BHT = at::empty({B, H, Tq}, q.options());
  at::Tensor out = out_BTHD.transpose(1, 2), q3 = three(q), k3 = three(k), v3 = three(v);
  Scalar* lse = lse_BHT.mutable_data_ptr<Scalar>();
  for (const Tile& tile : tiles(rule, B, Tq, Tk)) {
    at::Tensor p = at::bmm(q3.narrow(1, tile.begin, tile.rows), k3.narrow(1, 0, tile.keys).transpose(1, 2));
    each_row<Scalar>(p, tile, H, Tq, Tk, [&](Scalar* row, int64_t b, int64_t h, int64_t i, int64_t element, float* keep) {
      int64_t seen = visible_keys(rule, b, i, Tk);
      Scalar largest = -std::numeric_limits<Scalar>::infinity(), sum = 0;
      for (int64_t j = 0; j < seen; j++) largest = std::max(largest, row[j] *= scale);
      for (int64_t j = 0; j < seen; j++) sum += row[j] = std::exp(row[j] - largest);
      for (int64_t j = 0; j < seen; j++) row[j] /= sum;
      std::fill(row + seen, row + tile.keys, Scalar(0));
      lse[(b * H + h) * Tq + i] = largest + std::log(sum);
      if (rule.dropout.probability > 0) {
        dropout_factors(rule.dropout, element, seen, keep);
        for (int64_t j = 0; j < seen; j++) row[j] *= keep[j];
      }
    });
    out.narrow(2, tile.begin, tile.rows).copy_(at::bmm(p, v3.narrow(1, 0, tile.keys)).view({B, H, tile.rows, Dv}));
  }
  return {out, lse_BHT};
}

template <class Scalar>
std::tuple<at::Tensor, at::Tensor, at::Tensor> backward(const at::Tensor& g, const at::Tensor& q, const at::Tensor& k,
                                                        const at::Tensor& v, const at::Tensor& o, const at::Tensor& lse_BHT,
                                                        const AttentionRule& rule) {
  const int64_t B = q.size(0), H = q.size(1), Tq = q.size(2), D = q.size(3), Tk = k.size(2);
  const auto scale = static_cast<Scalar>(1.0 / std::sqrt(static_cast<double>(D)));
  at::Tensor q3 = three(q), k3 = three(k), v3 = three(v), g3 = three(g);
  at::Tensor gq3 = at::empty(q3.sizes(), q3.options()), gk3 = at::zeros(k3.sizes(), k3.options());
  at::Tensor gv3 = at::zeros(v3.sizes(), v3.options());
  at::Tensor delta_BHT = at::sum(g * o, {-1}).contiguous();  // sum over keys of p * dp, dropout included
  const Scalar *lse = lse_BHT.const_data_ptr<Scalar>(), *delta = delta_BHT.const_data_ptr<Scalar>();
  for (const Tile& tile : tiles(rule, B, Tq, Tk)) {
    at::Tensor q_tile = q3.narrow(1, tile.begin, tile.rows), g_tile = g3.narrow(1, tile.begin, tile.rows);
    at::Tensor k_seen = k3.narrow(1, 0, tile.keys), v_seen = v3.narrow(1, 0, tile.keys);
    at::Tensor p = at::bmm(q_tile, k_seen.transpose(1, 2));           // scores, then dropped probabilities
    at::Tensor ds = at::bmm(g_tile, v_seen.transpose(1, 2));          // dp, then the scores' gradient
    Scalar* ds_data = ds.mutable_data_ptr<Scalar>();
    Scalar* p_data = p.mutable_data_ptr<Scalar>();
    each_row<Scalar>(p, tile, H, Tq, Tk, [&](Scalar* row, int64_t b, int64_t h, int64_t i, int64_t element, float* keep) {
      Scalar* ds_row = ds_data + (row - p_data);
      int64_t seen = visible_keys(rule, b, i, Tk), at = (b * H + h) * Tq + i;
      if (rule.dropout.probability > 0)
        dropout_factors(rule.dropout, element, seen, keep);
      else
        std::fill(keep, keep + seen, 1.0f);
      for (int64_t j = 0; j < seen; j++) {
        Scalar probability = std::exp(row[j] * scale - lse[at]);
        ds_row[j] = probability * (ds_row[j] * keep[j] - delta[at]) * scale;
        row[j] = probability * keep[j];
      }
      std::fill(row + seen, row + tile.keys, Scalar(0));
      std::fill(ds_row + seen, ds_row + tile.keys, Scalar(0));
    });
    gv3.narrow(1, 0, tile.keys).add_(at::bmm(p.transpose(1, 2), g_tile));
    gk3.narrow(1, 0, tile.keys).add_(at::bmm(ds.transpose(1, 2), q_tile));
    gq3.narrow(1, tile.begin, tile.rows).copy_(at::bmm(ds, k_seen));
  }
  return {gq3.view(q.sizes()), gk3.view(k.sizes()), gv3.view(v.sizes())};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> tiled_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                   const AttentionRule& rule) {
  if (q.scalar_type() == at::kDouble) return forward<double>(q, k, v, rule);
  if (q.scalar_type() == at::kFloat) return forward<float>(q, k, v, rule);
  auto [o, lse] = forward<float>(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), rule);
  return {o.to(q.scalar_type()), lse};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> tiled_attention_backward(const at::Tensor& g, const at::Tensor& q,
                                                                        const at::Tensor& k, const at::Tensor& v,
                                                                        const at::Tensor& o, const at::Tensor& lse,
                                                                        const AttentionRule& rule) {
  if (q.scalar_type() == at::kDouble) return backward<double>(g, q, k, v, o, lse, rule);
  if (q.scalar_type() == at::kFloat) return backward<float>(g, q, k, v, o, lse, rule);
  auto wide = [](const at::Tensor& x) { return x.to(at::kFloat); };
  auto [gq, gk, gv] = backward<float>(wide(g), wide(q), wide(k), wide(v), wide(o), lse, rule);
  auto type = q.scalar_type();
  return {gq.to(type), gk.to(type), gv.to(type)};
}

}  // namespace megalith::kernels

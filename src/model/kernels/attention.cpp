#include "model/kernels/attention.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/kernels/blas.h"
#include "model/kernels/rows.h"
#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

// Sizes of a tile of scores. A tile and its keys fit the cache, and it is tall enough for fast products. The sizes are
// fixed, so that the order of sums does not depend on the number of threads.
constexpr int64_t kQueries = 64, kKeys = 256;

// A [B, heads, T, D] view: finds where the matrix of a head begins, and the distance between its rows.
template <class Scalar>
struct Heads {
  Scalar* data;
  int64_t sequence, head, row;  // strides in elements

  Matrix<Scalar> at(int64_t b, int64_t h, int64_t t) const { return {data + b * sequence + h * head + t * row, row}; }
};

template <class Scalar>
Heads<const Scalar> reading(const at::Tensor& x) {
  return {x.const_data_ptr<Scalar>(), x.stride(0), x.stride(1), x.stride(2)};
}
template <class Scalar>
Heads<Scalar> writing(const at::Tensor& x) {
  return {x.mutable_data_ptr<Scalar>(), x.stride(0), x.stride(1), x.stride(2)};
}

// A run of queries of one sequence, and the keys that any of them sees: [first_key, last_key).
struct QueryTile {
  int64_t sequence, begin, rows;
  int64_t first_key = std::numeric_limits<int64_t>::max(), last_key = 0;
};

std::vector<QueryTile> query_tiles(const Sight& sight, int64_t sequences, int64_t queries) {
  std::vector<QueryTile> tiles;
  for (int64_t b = 0; b < sequences; b++)
    for (int64_t begin = 0; begin < queries; begin += kQueries) {
      QueryTile& tile = tiles.emplace_back(QueryTile{b, begin, std::min(kQueries, queries - begin)});
      for (int64_t q = b * queries + begin; q < b * queries + begin + tile.rows; q++) {
        if (sight.begin[q] >= sight.end[q]) continue;
        tile.first_key = std::min(tile.first_key, sight.begin[q]);
        tile.last_key = std::max(tile.last_key, sight.end[q]);
      }
    }
  return tiles;
}

// The part of keys [key, key + keys) that a query sees, counted from `key`.
struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
Range visible(const Sight& sight, int64_t query, int64_t key, int64_t keys) {
  const int64_t begin = std::clamp<int64_t>(sight.begin[query] - key, 0, keys);
  return {begin, std::clamp<int64_t>(sight.end[query] - key, begin, keys)};
}

// Turns scores into probabilities: p = e^(scale s - lse). Turns the gradient dp into that of the scores:
// ds = p (dp - delta) scale.
MEGALITH_VECTORISED
void row_backward(float* s, float* dp, int64_t n, float scale, float lse, float delta) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float p = exp_fast(s[i] * scale - lse);
    s[i] = p;
    dp[i] = p * (dp[i] - delta) * scale;
  }
}

MEGALITH_VECTORISED
float row_dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// float64 is only for checks, so these are plain loops.
void row_backward(double* s, double* dp, int64_t n, double scale, double lse, double delta) {
  for (int64_t i = 0; i < n; i++) {
    s[i] = std::exp(s[i] * scale - lse);
    dp[i] = s[i] * (dp[i] - delta) * scale;
  }
}
double row_dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// Log-sum-exp of no scores.
template <class Scalar>
constexpr Scalar kNothing = -std::numeric_limits<Scalar>::infinity();

// Writes zeros to the scores of keys that a query does not see.
template <class Scalar>
void hide(Scalar* row, Range seen, int64_t keys) {
  std::fill(row, row + seen.begin, Scalar(0));
  std::fill(row + seen.end, row + keys, Scalar(0));
}

template <class Scalar>
void multiply_by(Scalar* row, const float* factors, int64_t n) {
  for (int64_t i = 0; i < n; i++) row[i] *= factors[i];
}

template <class Scalar>
struct Sizes {
  int64_t B, H, KV, Tq, Tk, D;
  Scalar scale;
  Sizes(const at::Tensor& q, const at::Tensor& k)
      : B(q.size(0)),
        H(q.size(1)),
        KV(k.size(1)),
        Tq(q.size(2)),
        Tk(k.size(2)),
        D(q.size(3)),
        scale(static_cast<Scalar>(1.0 / std::sqrt(static_cast<double>(q.size(3))))) {}
  int64_t group() const { return H / KV; }
  // Returns the index of a query's first score among all scores.
  int64_t element(const ScoreDropout& of, int64_t b, int64_t h, int64_t query) const {
    const int64_t heads = of.heads ? of.heads : H, queries = of.queries ? of.queries : Tq, keys = of.keys ? of.keys : Tk;
    return ((b * heads + of.first_head + h) * queries + of.first_query + query) * keys + of.first_key;
  }
};

template <class Scalar>
void forward(const QueryKeyValue& in, const Sight& sight, const ScoreDropout& dropout, bool onto,
             const AttentionOutput& output) {
  const Sizes<Scalar> size(in.q, in.k);
  const auto q = reading<Scalar>(in.q), k = reading<Scalar>(in.k), v = reading<Scalar>(in.v);
  const auto o = writing<Scalar>(output.o);
  Scalar* lse = output.lse_BHT.mutable_data_ptr<Scalar>();
  const std::vector<QueryTile> tiles = query_tiles(sight, size.B, size.Tq);
  // The head is the outer index, so that threads get equal shares of short and long tiles.
  const auto work = size.H * static_cast<int64_t>(tiles.size());
  at::parallel_for(0, work, 1, [&](int64_t first, int64_t last) {
    std::vector<Scalar> scores(kQueries * kKeys), sum(kQueries), largest(kQueries);
    std::vector<float> keep(dropout.probability > 0 ? kKeys : 0);
    for (int64_t w = first; w < last; w++) {
      const QueryTile& tile = tiles[static_cast<size_t>(w) % tiles.size()];
      const int64_t b = tile.sequence, h = w / static_cast<int64_t>(tiles.size()), kv = h / size.group();
      const Matrix<Scalar> out = o.at(b, h, tile.begin);
      Scalar* tile_lse = lse + (b * size.H + h) * size.Tq + tile.begin;
      std::fill(sum.begin(), sum.end(), Scalar(0));
      std::fill(largest.begin(), largest.end(), kNothing<Scalar>);
      for (int64_t r = 0; r < tile.rows; r++) {
        if (onto) {  // the keys seen before count like one key with this score
          largest[r] = tile_lse[r];
          sum[r] = largest[r] == kNothing<Scalar> ? Scalar(0) : Scalar(1);
        } else if (tile.first_key >= tile.last_key) {
          std::fill_n(out.data + r * out.stride, size.D, Scalar(0));
        }
      }
      bool begun = onto;  // `out` holds something to add to
      for (int64_t key = tile.first_key; key < tile.last_key; key += kKeys) {
        const int64_t keys = std::min(kKeys, tile.last_key - key);
        multiply(tile.rows, keys, size.D, Factor<Scalar>{q.at(b, h, tile.begin)}, {k.at(b, kv, key), Transpose::yes},
                 {scores.data(), keys}, false);
        for (int64_t r = 0; r < tile.rows; r++) {
          Scalar* row = scores.data() + r * keys;
          const Range seen = visible(sight, b * size.Tq + tile.begin + r, key, keys);
          hide(row, seen, keys);
          if (seen.size() == 0) continue;
          // If the largest score grows, the sums so far must shrink by the same factor.
          const Scalar before = largest[r];
          largest[r] = std::max(before, row_max(row + seen.begin, seen.size()) * size.scale);
          const Scalar shrink = begun ? std::exp(before - largest[r]) : Scalar(0);
          sum[r] = sum[r] * shrink + row_exp(row + seen.begin, seen.size(), size.scale, largest[r]);
          if (begun && shrink != 1) row_scale(out.data + r * out.stride, size.D, shrink);
          if (dropout.probability > 0) {
            dropout_factors(dropout, size.element(dropout, b, h, tile.begin + r) + key + seen.begin, seen.size(),
                            keep.data());
            multiply_by(row + seen.begin, keep.data(), seen.size());
          }
        }
        multiply(tile.rows, size.D, keys, Factor<Scalar>{{scores.data(), keys}}, {v.at(b, kv, key)}, out,
                 begun);
        begun = true;
      }
      for (int64_t r = 0; r < tile.rows; r++) {
        const bool saw = sum[r] > 0;
        if (saw) row_scale(out.data + r * out.stride, size.D, 1 / sum[r]);
        tile_lse[r] = saw ? largest[r] + std::log(sum[r]) : kNothing<Scalar>;
      }
    }
  });
}

// One thread computes the keys and values of one key head of a sequence, with all queries that read them. So sums have a
// fixed order. If there are fewer such tasks than threads, some threads are idle.
template <class Scalar>
void backward(const at::Tensor& g4, const QueryKeyValue& in, const AttentionOutput& out, const Sight& sight,
              const ScoreDropout& dropout, bool onto, const QueryKeyValue& gradients) {
  const Sizes<Scalar> size(in.q, in.k);
  const auto q = reading<Scalar>(in.q), k = reading<Scalar>(in.k), v = reading<Scalar>(in.v), g = reading<Scalar>(g4),
             o = reading<Scalar>(out.o);
  const auto gq = writing<Scalar>(gradients.q), gk = writing<Scalar>(gradients.k), gv = writing<Scalar>(gradients.v);
  const Scalar* lse = out.lse_BHT.const_data_ptr<Scalar>();
  const std::vector<QueryTile> all_tiles = query_tiles(sight, size.B, size.Tq);
  const int64_t per_sequence = static_cast<int64_t>(all_tiles.size()) / size.B;
  at::parallel_for(0, size.B * size.KV, 1, [&](int64_t first, int64_t last) {
    std::vector<Scalar> scores(kQueries * kKeys), slopes(kQueries * kKeys), delta(size.group() * size.Tq);
    std::vector<float> keep(dropout.probability > 0 ? kKeys : 0);
    std::vector<char> begun(static_cast<size_t>(size.group() * per_sequence));  // query tiles whose gq has a first term
    for (int64_t task = first; task < last; task++) {
      const int64_t b = task / size.KV, kv = task % size.KV;
      const QueryTile* tiles = &all_tiles[static_cast<size_t>(b * per_sequence)];
      std::fill(begun.begin(), begun.end(), onto);
      for (int64_t i = 0; i < size.group(); i++)
        for (int64_t t = 0; t < size.Tq; t++)  // sum over keys of p dp, dropout included
          delta[i * size.Tq + t] = row_dot(g.at(b, kv * size.group() + i, t).data,
                                           o.at(b, kv * size.group() + i, t).data, size.D);
      for (int64_t key = 0; key < size.Tk; key += kKeys) {
        const int64_t key_end = std::min(size.Tk, key + kKeys);
        const auto to_k = gk.at(b, kv, key), to_v = gv.at(b, kv, key);
        for (int64_t t = 0; t < key_end - key && !onto; t++) {
          std::fill_n(to_k.data + t * to_k.stride, size.D, Scalar(0));
          std::fill_n(to_v.data + t * to_v.stride, size.D, Scalar(0));
        }
        for (int64_t i = 0; i < size.group(); i++) {
          const int64_t h = kv * size.group() + i;
          for (int64_t n = 0; n < per_sequence; n++) {
            const QueryTile& tile = tiles[n];
            const int64_t from = std::max(key, tile.first_key), keys = std::min(key_end, tile.last_key) - from;
            if (keys <= 0) continue;
            const Matrix<const Scalar> q_tile = q.at(b, h, tile.begin), g_tile = g.at(b, h, tile.begin);
            const Matrix<const Scalar> k_tile = k.at(b, kv, from), v_tile = v.at(b, kv, from);
            const Matrix<Scalar> p{scores.data(), keys}, ds{slopes.data(), keys};
            const Matrix<const Scalar> p_done{p.data, keys}, ds_done{ds.data, keys};
            multiply(tile.rows, keys, size.D, Factor<Scalar>{q_tile}, {k_tile, Transpose::yes}, p, false);
            multiply(tile.rows, keys, size.D, Factor<Scalar>{g_tile}, {v_tile, Transpose::yes}, ds, false);
            for (int64_t r = 0; r < tile.rows; r++) {
              const int64_t query = tile.begin + r;
              const Range seen = visible(sight, b * size.Tq + query, from, keys);
              Scalar *s = p.data + r * keys + seen.begin, *dp = ds.data + r * keys + seen.begin;
              if (dropout.probability > 0) {
                dropout_factors(dropout, size.element(dropout, b, h, query) + from + seen.begin, seen.size(),
                                keep.data());
                multiply_by(dp, keep.data(), seen.size());
              }
              row_backward(s, dp, seen.size(), size.scale, lse[(b * size.H + h) * size.Tq + query],
                           delta[i * size.Tq + query]);
              if (dropout.probability > 0) multiply_by(s, keep.data(), seen.size());
              hide(p.data + r * keys, seen, keys);
              hide(ds.data + r * keys, seen, keys);
            }
            multiply(keys, size.D, tile.rows, Factor<Scalar>{p_done, Transpose::yes}, {g_tile}, gv.at(b, kv, from), true);
            multiply(keys, size.D, tile.rows, Factor<Scalar>{ds_done, Transpose::yes}, {q_tile}, gk.at(b, kv, from), true);
            char& has_begun = begun[static_cast<size_t>(i * per_sequence + n)];
            multiply(tile.rows, size.D, keys, Factor<Scalar>{ds_done}, {k_tile}, gq.at(b, h, tile.begin),
                     has_begun);
            has_begun = 1;
          }
        }
      }
      for (size_t n = 0; n < begun.size(); n++) {  // queries that see no key
        const QueryTile& tile = tiles[n % static_cast<size_t>(per_sequence)];
        const auto to_q = gq.at(b, kv * size.group() + static_cast<int64_t>(n) / per_sequence, tile.begin);
        for (int64_t r = 0; r < tile.rows && !begun[n]; r++) std::fill_n(to_q.data + r * to_q.stride, size.D, Scalar(0));
      }
    }
  });
}

bool is_wide(const at::Tensor& x) { return x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble; }

void forward_wide(const QueryKeyValue& in, const Sight& sight, const ScoreDropout& dropout, bool onto,
                  const AttentionOutput& out) {
  MEGALITH_ASSERT(static_cast<int64_t>(sight.begin.size()) == in.q.size(0) * in.q.size(2), "a range of keys for every query");
  MEGALITH_ASSERT(is_wide(in.q));
  if (in.q.scalar_type() == at::kFloat)
    forward<float>(in, sight, dropout, onto, out);
  else
    forward<double>(in, sight, dropout, onto, out);
}

void backward_wide(const at::Tensor& g, const QueryKeyValue& in, const AttentionOutput& out, const Sight& sight,
                   const ScoreDropout& dropout, bool onto, const QueryKeyValue& gradients) {
  MEGALITH_ASSERT(is_wide(in.q));
  if (in.q.scalar_type() == at::kFloat)
    backward<float>(g, in, out, sight, dropout, onto, gradients);
  else
    backward<double>(g, in, out, sight, dropout, onto, gradients);
}

at::Tensor widened(const at::Tensor& x) { return x.to(at::kFloat); }
at::Tensor wide_like(const at::Tensor& x) { return tensor::empty(x.sizes(), x.options().dtype(at::kFloat)); }

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight,
                     const ScoreDropout& dropout, at::Tensor o) {
  if (!is_wide(q)) {
    at::Tensor wide = wide_like(o), lse = attention(widened(q), widened(k), widened(v), sight, dropout, wide);
    o.copy_(wide);
    return lse;
  }
  at::Tensor lse_BHT = tensor::empty({q.size(0), q.size(1), q.size(2)}, q.options());
  forward_wide({q, k, v}, sight, dropout, false, {o, lse_BHT});
  return lse_BHT;
}

void attention_onto(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight,
                    const ScoreDropout& dropout, at::Tensor o, at::Tensor lse_BHT) {
  forward_wide({q, k, v}, sight, dropout, true, {o, lse_BHT});
}

void attention_backward(const at::Tensor& g, const QueryKeyValue& in, const AttentionOutput& out, const Sight& sight,
                        const ScoreDropout& dropout, const QueryKeyValue& gradients) {
  if (is_wide(in.q)) return backward_wide(g, in, out, sight, dropout, false, gradients);
  const QueryKeyValue wide{wide_like(gradients.q), wide_like(gradients.k), wide_like(gradients.v)};
  attention_backward(widened(g), {widened(in.q), widened(in.k), widened(in.v)}, {widened(out.o), out.lse_BHT}, sight,
                     dropout, wide);
  gradients.q.copy_(wide.q);
  gradients.k.copy_(wide.k);
  gradients.v.copy_(wide.v);
}

void attention_backward_onto(const at::Tensor& g, const QueryKeyValue& in, const AttentionOutput& out, const Sight& sight,
                             const ScoreDropout& dropout, const QueryKeyValue& gradients) {
  backward_wide(g, in, out, sight, dropout, true, gradients);
}

}  // namespace megalith::kernels

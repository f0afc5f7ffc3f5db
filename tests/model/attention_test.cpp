#include "model/kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

// The rules for which keys a query sees, as users know them.
enum class Kind { causal, all, prefix, documents };

struct Case {
  std::string name;
  int64_t sequences, heads, queries, keys, dim;
  Kind kind = Kind::causal;
  std::vector<int64_t> prefix = {};
  int64_t first_query = 0;
  double dropout = 0;
  int64_t kv_heads = 0;  // 0: the same number as heads
};

// Documents of lengths 1, 2, 3, ... 40, 1, 2, ...; every sequence begins inside one.
int64_t document_of(int64_t b, int64_t position) {
  int64_t left = position + 7 * b, number = 0;
  for (int64_t length = 1; left >= length; length = length % 40 + 1) left -= length, number++;
  return number;
}

bool sees(const Case& c, int64_t b, int64_t query, int64_t key) {
  if (c.kind == Kind::all) return true;
  if (c.kind == Kind::documents && document_of(b, query) != document_of(b, key)) return false;
  if (key <= c.first_query + query) return true;
  return c.kind == Kind::prefix && key < c.prefix[static_cast<size_t>(b)];
}

Sight sight_of(const Case& c) {
  Sight sight;
  for (int64_t b = 0; b < c.sequences; b++)
    for (int64_t i = 0; i < c.queries; i++) {
      int64_t begin = 0;
      while (!sees(c, b, i, begin)) begin++;
      int64_t end = begin;
      while (end < c.keys && sees(c, b, i, end)) end++;
      sight.begin.push_back(begin);
      sight.end.push_back(end);
    }
  return sight;
}

DropoutSite dropout_of(const Case& c) {
  return {.seed = 3, .use = RandomUse::attention_dropout, .item = 1, .step = 5,
          .first_element = 2 * c.heads * c.queries * c.keys, .probability = c.dropout};
}

struct Result {
  std::vector<double> o, lse, gq, gk, gv;
};

// Softmax attention and its derivative from the definition, one query at a time, in float64. Computes for each element
// whether dropout drops its probability.
Result reference(const Case& c, const at::Tensor& q4, const at::Tensor& k4, const at::Tensor& v4,
                 const at::Tensor& g4) {
  const int64_t B = c.sequences, H = c.heads, Tq = c.queries, Tk = c.keys, D = c.dim;
  const int64_t KV = c.kv_heads ? c.kv_heads : H;
  std::vector<double> q = doubles(q4), k = doubles(k4), v = doubles(v4), g = doubles(g4);
  Result out{std::vector<double>(q.size()), std::vector<double>(static_cast<size_t>(B * H * Tq)),
             std::vector<double>(q.size()), std::vector<double>(k.size()), std::vector<double>(v.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  const DropoutSite site = dropout_of(c);
  std::vector<double> p(static_cast<size_t>(Tk)), keep(p.size()), dp(p.size());
  for (int64_t z = 0; z < B * H; z++)
    for (int64_t i = 0; i < Tq; i++) {
      const double* qi = &q[static_cast<size_t>((z * Tq + i) * D)];
      const double* gi = &g[static_cast<size_t>((z * Tq + i) * D)];
      const int64_t zk = z / H * KV + z % H / (H / KV);  // the key head that this head reads
      auto kj = [&](int64_t j) { return static_cast<size_t>((zk * Tk + j) * D); };
      double largest = -INFINITY, sum = 0;
      for (int64_t j = 0; j < Tk; j++) {
        double s = 0;
        for (int64_t d = 0; d < D; d++) s += qi[d] * k[kj(j) + d];
        p[j] = sees(c, z / H, i, j) ? s * scale : -INFINITY;
        largest = std::max(largest, p[j]);
      }
      for (double& x : p) sum += x = std::exp(x - largest);
      double mean = 0;  // mean of dp, weighted by p
      for (int64_t j = 0; j < Tk; j++) {
        p[j] /= sum;
        float factor = 1;
        if (c.dropout > 0) dropout_factors(site, (z * Tq + i) * Tk + j, 1, &factor);
        keep[j] = factor;
        dp[j] = 0;
        for (int64_t d = 0; d < D; d++) dp[j] += gi[d] * v[kj(j) + d] * keep[j];
        mean += p[j] * dp[j];
      }
      out.lse[static_cast<size_t>(z * Tq + i)] = largest + std::log(sum);
      for (int64_t j = 0; j < Tk; j++)
        for (int64_t d = 0; d < D; d++) {
          double ds = p[j] * (dp[j] - mean) * scale;
          out.o[static_cast<size_t>((z * Tq + i) * D + d)] += p[j] * keep[j] * v[kj(j) + d];
          out.gq[static_cast<size_t>((z * Tq + i) * D + d)] += ds * k[kj(j) + d];
          out.gk[kj(j) + d] += ds * qi[d];
          out.gv[kj(j) + d] += p[j] * keep[j] * gi[d];
        }
    }
  return out;
}

struct Inputs {
  at::Tensor q, k, v, g;
};
Inputs inputs(const Case& c, at::ScalarType type) {
  const int64_t kv_heads = c.kv_heads ? c.kv_heads : c.heads;
  std::vector<int64_t> queries{c.sequences, c.heads, c.queries, c.dim}, keys{c.sequences, kv_heads, c.keys, c.dim};
  return {normal(queries, 1, type).mul_(2), normal(keys, 2, type), normal(keys, 3, type), normal(queries, 4, type)};
}

struct Computed {
  at::Tensor o, lse, gq, gk, gv;
};
Computed compute(const Case& c, const Inputs& in) {
  Computed out{at::empty_like(in.q), {}, at::empty_like(in.q), at::empty_like(in.k), at::empty_like(in.v)};
  out.lse = attention(in.q, in.k, in.v, sight_of(c), dropout_of(c), out.o);
  attention_backward(in.g, {in.q, in.k, in.v}, {out.o, out.lse}, sight_of(c), dropout_of(c), {out.gq, out.gk, out.gv});
  return out;
}

void expect_close(const Computed& got, const Result& wanted, double forward, double backward) {
  EXPECT_LT(distance(got.o, wanted.o), forward);
  EXPECT_LT(distance(got.lse, wanted.lse), forward);
  // With one position, a query sees only its own key: the gradients of query and key are zero.
  const double least = 0.1 * *std::max_element(wanted.gv.begin(), wanted.gv.end());
  EXPECT_LT(distance(got.gq, wanted.gq, least), backward);
  EXPECT_LT(distance(got.gk, wanted.gk, least), backward);
  EXPECT_LT(distance(got.gv, wanted.gv), backward);
}

// Returns the name of a case for failure messages.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class AttentionKernel : public testing::TestWithParam<Case> {};

TEST_P(AttentionKernel, AgreesWithPlainSoftmaxAttentionInFloat64) {
  const Case& c = GetParam();
  for (auto type : {at::kFloat, at::kDouble}) {
    Inputs in = inputs(c, type);
    // The factor 1 / (1 - p) is float32 in both.
    const double tolerance = type == at::kFloat ? 3e-6 : 1e-12;
    expect_close(compute(c, in), reference(c, in.q, in.k, in.v, in.g), tolerance, tolerance);
  }
}

// The same with heads, queries and keys in pieces, starting with the last keys. Ranks that each have one piece compute so.
Computed compute_in_pieces(const Case& c, const Inputs& in) {
  const int64_t KV = in.k.size(1), group = c.heads / KV;
  Computed out{at::zeros_like(in.q), at::empty({c.sequences, c.heads, c.queries}, in.q.options()), at::zeros_like(in.q),
               at::zeros_like(in.k), at::zeros_like(in.v)};
  const Sight whole = sight_of(c);
  struct Piece {
    int64_t begin, size;
  };
  auto pieces = [](int64_t n, int64_t count) {
    std::vector<Piece> all;
    for (int64_t i = 0; i < count; i++)
      if (n * (i + 1) / count > n * i / count) all.push_back({n * i / count, n * (i + 1) / count - n * i / count});
    return all;
  };
  for (const Piece& kv : pieces(KV, 2))
    for (const Piece& queries : pieces(c.queries, 2)) {
      auto of_q = [&](const at::Tensor& x) {
        return x.narrow(1, kv.begin * group, kv.size * group).narrow(2, queries.begin, queries.size);
      };
      at::Tensor lse = at::full({c.sequences, kv.size * group, queries.size}, -INFINITY, in.q.options());
      auto for_each_piece = [&](const auto& work) {
        auto all = pieces(c.keys, 3);
        for (auto keys = all.rbegin(); keys != all.rend(); ++keys) {
          Sight sight;
          for (int64_t b = 0; b < c.sequences; b++)
            for (int64_t i = queries.begin; i < queries.begin + queries.size; i++) {
              const auto at = static_cast<size_t>(b * c.queries + i);
              sight.begin.push_back(std::clamp<int64_t>(whole.begin[at] - keys->begin, 0, keys->size));
              sight.end.push_back(std::clamp<int64_t>(whole.end[at] - keys->begin, 0, keys->size));
            }
          ScoreDropout dropout(dropout_of(c));
          dropout.heads = c.heads, dropout.first_head = kv.begin * group;
          dropout.queries = c.queries, dropout.first_query = queries.begin;
          dropout.keys = c.keys, dropout.first_key = keys->begin;
          work([&, keys](const at::Tensor& x) { return x.narrow(1, kv.begin, kv.size).narrow(2, keys->begin, keys->size); },
               sight, dropout);
        }
      };
      for_each_piece([&](const auto& of_k, const Sight& sight, const ScoreDropout& dropout) {
        attention_onto(of_q(in.q), of_k(in.k), of_k(in.v), sight, dropout, of_q(out.o), lse);
      });
      for_each_piece([&](const auto& of_k, const Sight& sight, const ScoreDropout& dropout) {
        attention_backward_onto(of_q(in.g), {of_q(in.q), of_k(in.k), of_k(in.v)}, {of_q(out.o), lse}, sight, dropout,
                                {of_q(out.gq), of_k(out.gk), of_k(out.gv)});
      });
      of_q(out.lse.unsqueeze(-1)).squeeze(-1).copy_(lse);
    }
  return out;
}

TEST_P(AttentionKernel, ComesOutTheSameInPieces) {
  const Case& c = GetParam();
  for (auto type : {at::kFloat, at::kDouble}) {
    Inputs in = inputs(c, type);
    const double tolerance = type == at::kFloat ? 3e-6 : 1e-12;
    expect_close(compute_in_pieces(c, in), reference(c, in.q, in.k, in.v, in.g), tolerance, tolerance);
  }
}

TEST(AttentionKernelSight, QueriesThatSeeNothingHaveNoOutputAndNoGradient) {
  Case c{"", 2, 4, 130, 90, 4, Kind::all, {}, 0, 0, 2};
  Inputs in = inputs(c, at::kFloat);
  Sight sight = sight_of(c);
  auto blind = [&](int64_t i) { return i % 130 < 70 || i % 3 == 0; };  // a whole tile, and some
  for (int64_t i = 0; i < 260; i++)
    if (blind(i)) sight.begin[static_cast<size_t>(i)] = sight.end[static_cast<size_t>(i)] = 40;
  at::Tensor o = at::full_like(in.q, 7), gq = at::full_like(in.q, 7), gk = at::full_like(in.k, 7), gv = gk.clone();
  at::Tensor lse = attention(in.q, in.k, in.v, sight, {}, o);
  attention_backward(in.g, {in.q, in.k, in.v}, {o, lse}, sight, {}, {gq, gk, gv});
  auto all_zero = [](const at::Tensor& x) { return testing_support::dot(x, x) == 0; };
  for (int64_t b = 0; b < 2; b++)
    for (int64_t i = 0; i < 130; i++) {
      EXPECT_EQ(blind(b * 130 + i), all_zero(o[b].select(1, i)));
      EXPECT_EQ(blind(b * 130 + i), all_zero(gq[b].select(1, i)));
      EXPECT_EQ(blind(b * 130 + i), lse[b][0][i].item<float>() == -INFINITY);
    }
  // All other queries, and the keys, get the same results as if the blind queries did not exist.
  for (int64_t i = 0; i < 260; i++)
    if (blind(i)) in.g[i / 130].select(1, i % 130).zero_();
  Computed without = compute(c, in);
  EXPECT_LT(distance(gk, without.gk), 1e-6);
  EXPECT_LT(distance(gv, without.gv), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, AttentionKernel,
    testing::Values(Case{"OnePosition", 1, 1, 1, 1, 2}, Case{"Odd", 2, 3, 7, 7, 5},
                    Case{"BelowATile", 1, 2, 63, 63, 8}, Case{"ATile", 1, 2, 64, 64, 8},
                    Case{"AboveATile", 1, 2, 65, 65, 8}, Case{"TilesOfQueriesAndKeys", 1, 1, 600, 600, 6},
                    Case{"All", 2, 2, 130, 130, 4, Kind::all}, Case{"AllOverKeys", 1, 1, 70, 530, 4, Kind::all},
                    Case{"PrefixPerSequence", 4, 2, 20, 20, 4, Kind::prefix, {0, 1, 13, 20}},
                    Case{"PrefixOverTiles", 3, 1, 300, 300, 4, Kind::prefix, {5, 129, 280}},
                    Case{"CachedKeys", 2, 2, 3, 10, 4, Kind::causal, {}, 7},
                    Case{"CachedKeysOverTiles", 1, 2, 130, 400, 4, Kind::causal, {}, 270},
                    Case{"OneQueryManyKeys", 2, 4, 1, 700, 4, Kind::causal, {}, 699, 0, 2},
                    Case{"Documents", 3, 2, 90, 90, 4, Kind::documents},
                    Case{"DocumentsOverTiles", 2, 1, 700, 700, 4, Kind::documents},
                    Case{"GroupedHeads", 2, 6, 70, 70, 4, Kind::causal, {}, 0, 0, 2},
                    Case{"OneKeyHead", 1, 4, 270, 270, 4, Kind::causal, {}, 0, 0, 1},
                    Case{"GroupedDocuments", 2, 4, 100, 100, 4, Kind::documents, {}, 0, 0, 2},
                    Case{"Dropout", 2, 3, 17, 17, 5, Kind::causal, {}, 0, 0.25},
                    Case{"DropoutOverTiles", 1, 2, 300, 300, 4, Kind::causal, {}, 0, 0.5},
                    Case{"DropoutAll", 2, 2, 33, 33, 4, Kind::all, {}, 0, 0.1},
                    Case{"DropoutDocuments", 2, 2, 100, 100, 4, Kind::documents, {}, 0, 0.1},
                    Case{"DropoutPrefix", 2, 2, 140, 140, 4, Kind::prefix, {3, 137}, 0, 0.1}),
    [](const auto& test) { return test.param.name; });

TEST(AttentionKernelScores, LargeScoresDoNotOverflow) {
  Case c{"", 1, 1, 9, 9, 4};
  Inputs in = inputs(c, at::kFloat);
  in.q.mul_(1000);
  Result wanted = reference(c, in.q, in.k, in.v, in.g);
  Computed got = compute(c, in);
  EXPECT_LT(distance(got.o, wanted.o), 1e-3);  // scores are in the thousands, so float32 rounds them to 1e-4
  EXPECT_LT(distance(got.lse, wanted.lse), 1e-6);
}

TEST(AttentionKernelLayout, ReadsAndWritesHeadsThatLieSideBySide) {
  // The layout in which the projection writes: [B, T, H + 2 KV, D]. Strides select the heads.
  const int64_t B = 2, T = 83, H = 4, KV = 2, D = 4;
  Case c{"", B, H, T, T, D, Kind::causal, {}, 0, 0, KV};
  at::Tensor qkv = normal({B, T, H + 2 * KV, D}, 1, at::kFloat).transpose(1, 2);
  at::Tensor g_qkv = at::empty({B, T, H + 2 * KV, D}, at::kFloat).transpose(1, 2);
  at::Tensor o = at::empty({B, T, H, D}, at::kFloat).transpose(1, 2), g = normal({B, H, T, D}, 2, at::kFloat);
  auto parts = [&](const at::Tensor& x) {
    return std::array{x.narrow(1, 0, H), x.narrow(1, H, KV), x.narrow(1, H + KV, KV)};
  };
  auto [q, k, v] = parts(qkv);
  auto [gq, gk, gv] = parts(g_qkv);
  at::Tensor lse = attention(q, k, v, sight_of(c), {}, o);
  attention_backward(g, {q, k, v}, {o, lse}, sight_of(c), {}, {gq, gk, gv});
  Computed apart = compute(c, {q.contiguous(), k.contiguous(), v.contiguous(), g});
  EXPECT_TRUE(o.equal(apart.o));
  EXPECT_TRUE(gq.equal(apart.gq));
  EXPECT_TRUE(gk.equal(apart.gk));
  EXPECT_TRUE(gv.equal(apart.gv));
}

TEST(AttentionKernelThreads, TheirNumberChangesNoBit) {
  Case c{"", 2, 6, 200, 200, 8, Kind::documents, {}, 0, 0.1, 3};
  Inputs in = inputs(c, at::kFloat);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  Computed one = compute(c, in);
  at::set_num_threads(3);
  Computed three = compute(c, in);
  at::set_num_threads(before);
  EXPECT_TRUE(one.o.equal(three.o));
  EXPECT_TRUE(one.gq.equal(three.gq));
  EXPECT_TRUE(one.gk.equal(three.gk));
  EXPECT_TRUE(one.gv.equal(three.gv));
}

TEST(AttentionKernelTypes, SixteenBitsComputeInFloat32) {
  Case c{"", 2, 2, 21, 21, 8};
  for (auto type : {at::kBFloat16, at::kHalf}) {
    Inputs in = inputs(c, type);
    Result wanted = reference(c, in.q, in.k, in.v, in.g);
    Computed got = compute(c, in);
    // The rounding error of the results. Rounding of the output also affects the gradients.
    double rounding = type == at::kHalf ? 1e-3 : 8e-3;
    EXPECT_EQ(got.o.scalar_type(), type);
    EXPECT_LT(distance(got.lse, wanted.lse), 1e-5);
    EXPECT_LT(distance(got.o, wanted.o), rounding);
    EXPECT_LT(distance(got.gq, wanted.gq), 4 * rounding);
    EXPECT_LT(distance(got.gk, wanted.gk), 4 * rounding);
    EXPECT_LT(distance(got.gv, wanted.gv), rounding);
  }
}

// Compares with plain ATen and with LibTorch's own kernel: three programs must agree.
TEST(AttentionKernelPeers, AgreesWithItsAtenForm) {
  for (Kind kind : {Kind::causal, Kind::all, Kind::documents}) {
    Case c{"", 2, 6, 300, 300, 8, kind, {}, 0, 0, 2};
    Inputs in = inputs(c, at::kFloat);
    Computed got = compute(c, in);
    auto [o, lse] = attention_aten(in.q, in.k, in.v, sight_of(c));
    auto [gq, gk, gv] = attention_aten_backward(in.g, in.q, in.k, in.v, o, lse, sight_of(c));
    EXPECT_LT(distance(got.o, o), 5e-6);
    EXPECT_LT(distance(got.lse, lse), 5e-6);
    EXPECT_LT(distance(got.gq, gq), 1e-5);
    EXPECT_LT(distance(got.gk, gk), 1e-5);
    EXPECT_LT(distance(got.gv, gv), 1e-5);
  }
}

TEST(AttentionKernelPeers, AgreesWithTheFlashKernelOfLibTorch) {
  for (bool causal : {true, false})
    for (int64_t length : {37, 128, 129, 300}) {
      Case c{"", 2, 3, length, length, 8, causal ? Kind::causal : Kind::all};
      Inputs in = inputs(c, at::kFloat);
      Computed got = compute(c, in);
      auto [o, lse] = at::_scaled_dot_product_flash_attention_for_cpu(in.q, in.k, in.v, 0.0, causal);
      auto [gq, gk, gv] =
          at::_scaled_dot_product_flash_attention_for_cpu_backward(in.g, in.q, in.k, in.v, o, lse, 0.0, causal);
      EXPECT_LT(distance(got.o, o), 5e-6) << length;
      EXPECT_LT(distance(got.lse, lse), 5e-6) << length;
      EXPECT_LT(distance(got.gq, gq), 1e-5) << length;
      EXPECT_LT(distance(got.gk, gk), 1e-5) << length;
      EXPECT_LT(distance(got.gv, gv), 1e-5) << length;
    }
}

}  // namespace
}  // namespace megalith::kernels

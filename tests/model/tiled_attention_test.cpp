#include "model/kernels/tiled_attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <gtest/gtest.h>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

struct Case {
  std::string name;
  int64_t sequences, heads, queries, keys, dim;
  Visibility visibility = Visibility::causal;
  std::vector<int64_t> prefix = {};
  int64_t first_query = 0;
  double dropout = 0;
};

AttentionRule rule_of(const Case& c) {
  AttentionRule rule{c.visibility, c.prefix, c.first_query, {}};
  rule.dropout = {.seed = 3, .use = RandomUse::attention_dropout, .item = 1, .step = 5,
                  .first_element = 2 * c.heads * c.queries * c.keys, .probability = c.dropout};
  return rule;
}

bool sees(const Case& c, int64_t b, int64_t query, int64_t key) {
  if (c.visibility == Visibility::all) return true;
  if (key <= c.first_query + query) return true;
  return c.visibility == Visibility::prefix && key < c.prefix[static_cast<size_t>(b)];
}

struct Result {
  std::vector<double> o, lse, gq, gk, gv;
};

// Softmax attention and its derivative from the definition, one query at a time, in float64. Whether a
// probability falls is asked element by element.
Result reference(const Case& c, const at::Tensor& q4, const at::Tensor& k4, const at::Tensor& v4,
                 const at::Tensor& g4) {
  const int64_t B = c.sequences, H = c.heads, Tq = c.queries, Tk = c.keys, D = c.dim;
  std::vector<double> q = doubles(q4), k = doubles(k4), v = doubles(v4), g = doubles(g4);
  Result out{std::vector<double>(q.size()), std::vector<double>(static_cast<size_t>(B * H * Tq)),
             std::vector<double>(q.size()), std::vector<double>(k.size()), std::vector<double>(v.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  const DropoutSite site = rule_of(c).dropout;
  std::vector<double> p(static_cast<size_t>(Tk)), keep(p.size()), dp(p.size());
  for (int64_t z = 0; z < B * H; z++)
    for (int64_t i = 0; i < Tq; i++) {
      const double* qi = &q[static_cast<size_t>((z * Tq + i) * D)];
      const double* gi = &g[static_cast<size_t>((z * Tq + i) * D)];
      auto kj = [&](int64_t j) { return static_cast<size_t>((z * Tk + j) * D); };
      double largest = -INFINITY, sum = 0;
      for (int64_t j = 0; j < Tk; j++) {
        double s = 0;
        for (int64_t d = 0; d < D; d++) s += qi[d] * k[kj(j) + d];
        p[j] = sees(c, z / H, i, j) ? s * scale : -INFINITY;
        largest = std::max(largest, p[j]);
      }
      for (double& x : p) sum += x = std::exp(x - largest);
      double mean = 0;  // of dp under p
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
  std::vector<int64_t> queries{c.sequences, c.heads, c.queries, c.dim}, keys{c.sequences, c.heads, c.keys, c.dim};
  return {normal(queries, 1, type).mul_(2), normal(keys, 2, type), normal(keys, 3, type), normal(queries, 4, type)};
}

// What a failing case is called.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class TiledAttention : public testing::TestWithParam<Case> {};

TEST_P(TiledAttention, AgreesWithPlainSoftmaxAttentionInFloat64) {
  const Case& c = GetParam();
  for (auto type : {at::kFloat, at::kDouble}) {
    auto [q, k, v, g] = inputs(c, type);
    Result wanted = reference(c, q, k, v, g);
    auto [o, lse] = tiled_attention(q, k, v, rule_of(c));
    auto [gq, gk, gv] = tiled_attention_backward(g, q, k, v, o, lse, rule_of(c));
    // The factor 1 / (1 - p) is float32 in both.
    double tolerance = type == at::kFloat ? 3e-6 : 1e-12;
    EXPECT_LT(distance(o, wanted.o), tolerance);
    EXPECT_LT(distance(lse, wanted.lse), tolerance);
    EXPECT_LT(distance(gq, wanted.gq), tolerance);
    EXPECT_LT(distance(gk, wanted.gk), tolerance);
    EXPECT_LT(distance(gv, wanted.gv), tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, TiledAttention,
    testing::Values(Case{"OnePosition", 1, 1, 1, 1, 2}, Case{"Odd", 2, 3, 7, 7, 5},
                    Case{"BelowATile", 1, 2, 127, 127, 8}, Case{"ATile", 1, 2, 128, 128, 8},
                    Case{"AboveATile", 1, 2, 129, 129, 8}, Case{"ThreeTiles", 1, 1, 300, 300, 6},
                    Case{"All", 2, 2, 130, 130, 4, Visibility::all},
                    Case{"PrefixPerSequence", 4, 2, 20, 20, 4, Visibility::prefix, {0, 1, 13, 20}},
                    Case{"PrefixOverTiles", 3, 1, 200, 200, 4, Visibility::prefix, {5, 129, 180}},
                    Case{"CachedKeys", 2, 2, 3, 10, 4, Visibility::causal, {}, 7},
                    Case{"CachedKeysOverTiles", 1, 2, 130, 200, 4, Visibility::causal, {}, 70},
                    Case{"Dropout", 2, 3, 17, 17, 5, Visibility::causal, {}, 0, 0.25},
                    Case{"DropoutOverTiles", 1, 2, 150, 150, 4, Visibility::causal, {}, 0, 0.5},
                    Case{"DropoutAll", 2, 2, 33, 33, 4, Visibility::all, {}, 0, 0.1},
                    Case{"DropoutPrefix", 2, 2, 140, 140, 4, Visibility::prefix, {3, 137}, 0, 0.1}),
    [](const auto& test) { return test.param.name; });

TEST(TiledAttentionScores, LargeScoresDoNotOverflow) {
  Case c{"", 1, 1, 9, 9, 4};
  auto [q, k, v, g] = inputs(c, at::kFloat);
  q.mul_(1000);
  Result wanted = reference(c, q, k, v, g);
  auto [o, lse] = tiled_attention(q, k, v, rule_of(c));
  EXPECT_LT(distance(o, wanted.o), 1e-3);  // scores of thousands are rounded to 1e-4
  EXPECT_LT(distance(lse, wanted.lse), 1e-6);
}

TEST(TiledAttentionLayout, TakesHeadsThatLieSideBySide) {
  // As the projection leaves them: [B, T, 3H, D], heads picked out by strides.
  const int64_t B = 2, T = 19, H = 3, D = 4;
  at::Tensor qkv = normal({B, T, 3 * H, D}, 1, at::kFloat).transpose(1, 2);
  at::Tensor q = qkv.narrow(1, 0, H), k = qkv.narrow(1, H, H), v = qkv.narrow(1, 2 * H, H);
  auto [o, lse] = tiled_attention(q, k, v, {});
  auto [o2, lse2] = tiled_attention(q.contiguous(), k.contiguous(), v.contiguous(), {});
  EXPECT_TRUE(o.equal(o2));
  EXPECT_TRUE(o.transpose(1, 2).is_contiguous());
}

TEST(TiledAttentionTypes, SixteenBitsComputeInFloat32) {
  Case c{"", 2, 2, 21, 21, 8};
  for (auto type : {at::kBFloat16, at::kHalf}) {
    auto [q, k, v, g] = inputs(c, type);
    Result wanted = reference(c, q, k, v, g);
    auto [o, lse] = tiled_attention(q, k, v, rule_of(c));
    auto [gq, gk, gv] = tiled_attention_backward(g, q, k, v, o, lse, rule_of(c));
    double rounding = type == at::kHalf ? 1e-3 : 8e-3;  // of the results; the output's goes into the gradients
    EXPECT_EQ(o.scalar_type(), type);
    EXPECT_LT(distance(o, wanted.o), rounding);
    EXPECT_LT(distance(lse, wanted.lse), 1e-5);
    EXPECT_LT(distance(gq, wanted.gq), 4 * rounding);
    EXPECT_LT(distance(gk, wanted.gk), 4 * rounding);
    EXPECT_LT(distance(gv, wanted.gv), rounding);
  }
}

TEST(FlashAttention, AgreesWithTheTiledKernelForwardAndBackward) {
  for (bool causal : {true, false})
    for (int64_t length : {1, 37, 128, 129, 300}) {
      Case c{"", 2, 3, length, length, 8, causal ? Visibility::causal : Visibility::all};
      auto [q, k, v, g] = inputs(c, at::kFloat);
      auto [o, lse] = tiled_attention(q, k, v, rule_of(c));
      auto [gq, gk, gv] = tiled_attention_backward(g, q, k, v, o, lse, rule_of(c));
      auto [fo, flse] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal);
      auto [fgq, fgk, fgv] =
          at::_scaled_dot_product_flash_attention_for_cpu_backward(g, q, k, v, fo, flse, 0.0, causal);
      EXPECT_LT(distance(fo, o), 5e-6) << length;
      EXPECT_LT(distance(flse, lse), 5e-6) << length;
      if (length == 1) continue;  // one key takes all: gradients of q and k are rounding errors around 0
      EXPECT_LT(distance(fgq, gq), 1e-5) << length;
      EXPECT_LT(distance(fgk, gk), 1e-5) << length;
      EXPECT_LT(distance(fgv, gv), 1e-5) << length;
    }
}

}  // namespace
}  // namespace megalith::kernels

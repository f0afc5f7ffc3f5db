#include "model/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include "model/support.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

struct Case {
  int64_t heads, kv_heads, queries, first, dim;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.heads << " heads, " << c.kv_heads << " key heads, " << c.queries << " queries after " << c.first
       << " positions, dimension " << c.dim;
}

// Reference: one query after the other, in float64.
std::vector<double> reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Case& c) {
  std::vector<double> out;
  for (int64_t h = 0; h < c.heads; h++)
    for (int64_t t = 0; t < c.queries; t++) {
      const int64_t g = h / (c.heads / c.kv_heads), keys = c.first + t + 1;
      std::vector<double> query = doubles(q[h][t]), p;
      double total = 0;
      for (int64_t n = 0; n < keys; n++) {
        std::vector<double> key = doubles(k[g][n]);
        double score = 0;
        for (size_t i = 0; i < key.size(); i++) score += query[i] * key[i];
        total += p.emplace_back(std::exp(score / std::sqrt(static_cast<double>(c.dim))));
      }
      std::vector<double> sum(static_cast<size_t>(c.dim), 0.0);
      for (int64_t n = 0; n < keys; n++) {
        std::vector<double> value = doubles(v[g][n]);
        for (size_t i = 0; i < sum.size(); i++) sum[i] += p[static_cast<size_t>(n)] / total * value[i];
      }
      out.insert(out.end(), sum.begin(), sum.end());
    }
  return out;
}

class CachedAttention : public testing::TestWithParam<Case> {};

TEST_P(CachedAttention, AgreesWithTheDefinitionAndWithItsAtenForm) {
  const Case& c = GetParam();
  for (auto [type, bound] : {std::pair{at::kFloat, 2e-6}, {at::kDouble, 1e-12}, {at::kBFloat16, 2e-2}}) {
    at::Tensor q = normal({c.heads, c.queries, c.dim}, 1, type);
    // Unused capacity after the keys, as in a cache.
    at::Tensor k = normal({c.kv_heads, c.first + c.queries + 5, c.dim}, 2, type).narrow(1, 0, c.first + c.queries);
    at::Tensor v = normal({c.kv_heads, c.first + c.queries + 5, c.dim}, 3, type).narrow(1, 0, c.first + c.queries);
    at::Tensor out = tensor::empty({c.heads, c.queries, c.dim}, type), plain = tensor::empty({c.heads, c.queries, c.dim}, type);
    cached_attention(q, k, v, c.first, out);
    cached_attention_plain(q, k, v, c.first, plain);
    std::vector<double> wanted = reference(q, k, v, c);
    EXPECT_LT(distance(out, wanted), bound);
    EXPECT_LT(distance(plain, wanted), bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CachedAttention,
                         testing::Values(Case{4, 4, 1, 0, 8}, Case{4, 2, 1, 100, 64}, Case{6, 1, 3, 7, 10},
                                         Case{2, 2, 5, 0, 3}, Case{12, 12, 1, 300, 64}));

}  // namespace
}  // namespace megalith::kernels

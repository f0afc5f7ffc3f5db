#include "model/kernels/cached_attention.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/kernels/simd.h"

namespace megalith::kernels {
namespace {

struct Rows {
  const float* data;
  int64_t stride;  // elements from row to row
};

// Computes one query. `out` receives the mean of the values, weighted by the probabilities. `scores` is scratch memory.
MEGALITH_VECTORISED void attend(const float* q, Rows k, Rows v, int64_t keys, int64_t dim, float scale, float* scores,
                                float* out) {
  constexpr int64_t lanes = 8;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t n = 0; n < keys; n++) {
    const float* row = k.data + n * k.stride;
    float sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= dim; i += lanes)
      for (int64_t l = 0; l < lanes; l++) sums[l] += q[i + l] * row[i + l];
    float sum = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
    for (; i < dim; i++) sum += q[i] * row[i];
    scores[n] = sum * scale;
    largest = scores[n] > largest ? scores[n] : largest;
  }
  for (int64_t n = 0; n < keys; n++) scores[n] = exp_fast(scores[n] - largest);
  double total = 0;
  for (int64_t n = 0; n < keys; n++) total += scores[n];
  const auto share = static_cast<float>(1 / total);
  for (int64_t i = 0; i < dim; i++) out[i] = 0;
  for (int64_t n = 0; n < keys; n++) {
    const float* row = v.data + n * v.stride;
    const float p = scores[n] * share;
    for (int64_t i = 0; i < dim; i++) out[i] += p * row[i];
  }
}

}  // namespace

void cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t first, at::Tensor out) {
  if (q.scalar_type() != at::kFloat) return cached_attention_plain(q, k, v, first, out);
  const int64_t heads = q.size(0), queries = q.size(1), dim = q.size(2), keys = k.size(1), group = heads / k.size(0);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  auto row = [](const at::Tensor& x, int64_t head, int64_t t) {
    return x.const_data_ptr<float>() + head * x.stride(0) + t * x.stride(1);
  };
  constexpr int64_t worth_a_thread = 1 << 15;  // multiplications
  const int64_t grain = std::max<int64_t>(1, worth_a_thread / (keys * dim));
  at::parallel_for(0, heads * queries, grain, [&](int64_t begin, int64_t end) {
    thread_local std::vector<float> scores;
    scores.resize(static_cast<size_t>(keys));
    for (int64_t n = begin; n < end; n++) {
      const int64_t h = n / queries, t = n % queries;
      attend(row(q, h, t), {row(k, h / group, 0), k.stride(1)}, {row(v, h / group, 0), v.stride(1)}, first + t + 1, dim,
             scale, scores.data(), const_cast<float*>(row(out, h, t)));
    }
  });
}

}  // namespace megalith::kernels

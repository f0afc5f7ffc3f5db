#include "model/layers/contrastive_loss.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "model/kernels/cross_entropy.h"
#include "model/kernels/product.h"
#include "model/layers/representation_facts.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

constexpr double kSmallestNorm = 1e-12;

// Returns columns [first, first + count) of every pair: all rows of the first column, then all rows of the next.
at::Tensor columns_of(const at::Tensor& x_SC, int64_t columns, int64_t first, int64_t count) {
  const int64_t pairs = x_SC.size(0) / columns, C = x_SC.size(1);
  return x_SC.view({pairs, columns, C}).narrow(1, first, count).transpose(0, 1).contiguous().view({count * pairs, C});
}

// The queries or the candidates of one direction. Query i belongs to candidate i.
struct Side {
  const at::Tensor& x_RC;  // of length 1
  at::Tensor& g_RC;        // receives its gradient; undefined without
  std::vector<uint64_t> texts;
};

// Compares every query with all candidates. Adds to the loss and, if `gradient`, to the gradients of both sides.
void score(const Side& queries, const Side& candidates, double temperature, double scale, LossSums& sums, bool gradient) {
  const int64_t rows = queries.x_RC.size(0), all = candidates.x_RC.size(0), chunk = std::min(rows, kAnchorsAtOnce);
  std::unordered_multimap<uint64_t, int64_t> with_text;
  for (int64_t j = 0; j < all; j++) with_text.emplace(candidates.texts[static_cast<size_t>(j)], j);
  at::Tensor buffer = tensor::empty({chunk, all}), losses = tensor::empty({chunk});
  std::vector<int64_t> own(static_cast<size_t>(chunk));
  for (int64_t r = 0; r < rows; r += chunk) {
    const int64_t n = std::min(chunk, rows - r);
    at::Tensor x = queries.x_RC.narrow(0, r, n), scores = buffer.narrow(0, 0, n), loss = losses.narrow(0, 0, n);
    kernels::product_into(x, candidates.x_RC.t(), scores);
    scores.mul_(1 / temperature);
    for (int64_t i = 0; i < n; i++) {
      float* score = scores.mutable_data_ptr<float>() + i * all;
      for (uint64_t text : {queries.texts[static_cast<size_t>(r + i)], candidates.texts[static_cast<size_t>(r + i)]}) {
        const auto [begin, end] = with_text.equal_range(text);
        for (auto same = begin; same != end; same++)
          if (same->second != r + i) score[same->second] = -std::numeric_limits<float>::infinity();
      }
      own[static_cast<size_t>(i)] = r + i;
    }
    const at::Tensor targets = tensor::from_blob(own.data(), {n}, at::kLong);
    kernels::cross_entropy(scores, targets, loss, gradient, scale / temperature);
    sums.loss += loss.sum(at::kDouble).item<double>();
    if (!gradient) continue;
    at::Tensor g = queries.g_RC.narrow(0, r, n);
    kernels::product_added(scores, candidates.x_RC, g);
    kernels::product_added(scores.t(), x, candidates.g_RC);
  }
}

}  // namespace

LossSums contrastive_loss(const at::Tensor& x_SC, std::span<const uint64_t> text_S, const Comparison& form, double scale,
                          at::Tensor* g_SC) {
  const int64_t columns = form.columns;
  const int64_t pairs = x_SC.size(0) / columns;
  MEGALITH_ASSERT(columns >= 2 && pairs * columns == x_SC.size(0) && std::ssize(text_S) == x_SC.size(0),
                  "{} sequences, {} columns", x_SC.size(0), columns);
  const auto texts = [&](int64_t first, int64_t count) {
    std::vector<uint64_t> of;
    for (int64_t column = first; column < first + count; column++)
      for (int64_t pair = 0; pair < pairs; pair++) of.push_back(text_S[static_cast<size_t>(pair * columns + column)]);
    return of;
  };
  const at::Tensor x = x_SC.to(at::kFloat), norm_S1 = x.norm(2, {1}, /*keepdim=*/true).clamp_min_(kSmallestNorm);
  const at::Tensor n_SC = x.div(norm_S1);
  const at::Tensor anchors = columns_of(n_SC, columns, 0, 1), candidates = columns_of(n_SC, columns, 1, columns - 1);
  at::Tensor g_anchors, g_candidates;
  if (g_SC) {
    g_anchors = tensor::zeros_like(anchors);
    g_candidates = tensor::zeros_like(candidates);
  }
  LossSums sums;
  const double each = form.symmetric ? scale / 2 : scale;
  const auto compare = [&](const Side& queries, const Side& others) {
    score(queries, others, form.temperature, each, sums, g_SC != nullptr);
  };
  compare({anchors, g_anchors, texts(0, 1)}, {candidates, g_candidates, texts(1, columns - 1)});
  if (form.symmetric) {
    const at::Tensor positives = candidates.narrow(0, 0, pairs);
    at::Tensor g_positives = g_SC ? g_candidates.narrow(0, 0, pairs) : at::Tensor();
    compare({positives, g_positives, texts(1, 1)}, {anchors, g_anchors, texts(0, 1)});
    sums.loss /= 2;
  }
  sums.targets = pairs;
  if (!g_SC) return sums;
  at::Tensor g = tensor::empty({pairs, columns, x.size(1)});
  g.select(1, 0).copy_(g_anchors);
  g.narrow(1, 1, columns - 1).copy_(g_candidates.view({columns - 1, pairs, x.size(1)}).transpose(0, 1));
  g = g.view(x.sizes());
  // Backward of the division by the length: removes the part of the gradient that is parallel to the vector.
  g.sub_(n_SC.mul(n_SC.mul(g).sum({1}, true))).div_(norm_S1);
  *g_SC = g.to(x_SC.scalar_type());
  return sums;
}

}  // namespace megalith

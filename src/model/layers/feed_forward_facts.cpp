#include "model/layers/feed_forward_facts.h"

#include <algorithm>

namespace megalith {
namespace {

// `matrices`: number of [F, C] matrices; `pre`: width of the pre-activation; `terms`: bytes of the temporaries of the
// activation in backward.
HalfFacts dense_facts(const RankSizes& r, int64_t matrices, int64_t pre, int64_t terms) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, F = r.F;
  HalfFacts f;
  f.weights = matrices * F * C;
  f.output = {2.0 * static_cast<double>(N * F * C), e * (S * 2 * C + N * (pre + F))};
  f.touched_bytes = e * N * (2 * pre + F);
  f.saved_bytes = N * r.kept.row(pre);
  f.plain_bytes = e * N * pre;
  // The gradient of the activations. Afterwards either this gradient or the pre-activation is freed. If rows are shared,
  // also a summand of the input gradient.
  const int64_t down = e * N * F + r.product_bytes(F, C);
  const int64_t summed = r.shares_rows() ? e * (N * (C - pre) + S * C) : 0;
  f.workspace_bytes = std::max({terms, down, std::max(e * N * C, summed)});
  f.activation_bytes = e * N * F;
  f.deferred_bytes = e * N * (pre + F + 2 * C);
  f.left_bytes = e * N * (pre + F);
  const int64_t input = N * C + (r.shares_rows() ? S * C : 0);
  f.deferring_bytes = std::max(terms, e * (N * F + input));
  f.unpacked_bytes = r.kept.packs() ? e * N * pre : 0;
  f.weight_rows = pre;
  return f;
}

}  // namespace

HalfFacts gelu_facts(const RankSizes& r) { return dense_facts(r, 2, r.F, 0); }

HalfFacts swiglu_facts(const RankSizes& r) {
  const int64_t terms = r.e < 4 ? r.e * r.N * 9 * r.F : 0;  // temporaries of its ATen form
  HalfFacts f = dense_facts(r, 3, 2 * r.F, terms);
  f.workspace_bytes = std::max(f.workspace_bytes, r.product_bytes(2 * r.F, r.C));
  return f;
}

}  // namespace megalith

#include "model/layers/attention_facts.h"

#include "families/family.h"
#include "layout/cuts.h"

namespace megalith {

double score_flop(const RankSizes& r) {
  const double seen = r.s.family->bidirectional ? 1.0 : 0.5;  // the share of key positions that a query sees
  return 4.0 * static_cast<double>(r.N * r.m.length * r.A) * seen;
}

int64_t scored_bytes(const RankSizes& r) {
  if (r.kept.packs()) return r.N * r.kept.row(r.X) + 4 * r.N * r.H;
  const int64_t row = r.e * r.X + 4 * r.H;
  // Ulysses' form has some heads of all rows.
  return r.mesh.layout().context_form == ContextForm::ulysses ? r.m.tokens() * row / r.mesh.size(Axis::context) : r.N * row;
}

int64_t context_workspace(const RankSizes& r) {
  if (r.mesh.size(Axis::context) == 1) return 0;
  if (r.mesh.layout().context_form == ContextForm::ulysses)  // heads of gradient and output; then q, k, v's gradient on its way
    return r.e * r.N * (2 * r.A + r.X);
  return 4 * r.N * 2 * r.KV * 3;  // keys and values here and coming, and their gradients
}

// Of the ring, keys and values go round once forward, and backward with their gradients, those one turn longer. Of
// Ulysses' form, q, k, v and the output are exchanged forward; gradient and output, and q, k, v's gradient backward.
ContextExchanges context_exchanges(const RankSizes& r) {
  const int64_t n = r.mesh.size(Axis::context);
  if (n == 1) return {};
  if (r.mesh.layout().context_form == ContextForm::ulysses) {
    // To heads: of each other rank's heads, the rows here; back: of the heads here, each other rank's rows.
    const int64_t here = r.N, others = r.m.tokens() - r.N;
    const int64_t out_qkv = r.e * here * r.X / n * (n - 1), out_o = r.e * here * r.A / n * (n - 1);
    const int64_t back_qkv = r.e * others * r.X / n, back_o = r.e * others * r.A / n;
    return {.forward = {2, out_qkv + back_o}, .backward = {3, 2 * out_o + back_qkv}};
  }
  int64_t turned = 0, all = 0;  // rows that pass here on their way, all but the last rank's, and all
  for (int64_t turn = 0; turn < n; turn++) {
    const int64_t source = ((r.mesh.coordinate(Axis::context) - turn) % n + n) % n;
    const int64_t rows = r.m.sequences * context_length(r.m.length, n, source);
    all += rows;
    if (turn + 1 < n) turned += rows;
  }
  const int64_t forward = r.e * turned * 2 * r.KV;
  return {.forward = {n - 1, forward}, .backward = {2 * n - 1, forward + 4 * all * 2 * r.KV}};
}

}  // namespace megalith

#include "model/layers/attention_facts.h"

#include "families/family.h"
#include "layout/cuts.h"

namespace megalith {

double score_flop(const RankSizes& r) {
  const double seen = r.s.family->bidirectional ? 1.0 : 0.5;  // share of the key positions that a query sees
  return 4.0 * static_cast<double>(r.N * r.m.length * r.A) * seen;
}

int64_t scored_bytes(const RankSizes& r) {
  if (r.kept.packs()) return r.N * r.kept.row(r.X) + 4 * r.N * r.H;
  const int64_t row = r.e * r.X + 4 * r.H;
  // The Ulysses form has some heads of all rows.
  return r.mesh.layout().context_form == ContextForm::ulysses ? r.m.tokens() * row / r.mesh.size(Axis::context) : r.N * row;
}

int64_t context_workspace(const RankSizes& r) {
  if (r.mesh.size(Axis::context) == 1) return 0;
  // Ulysses: heads of the output and its gradient, then the gradients of q, k, v while they are sent.
  if (r.mesh.layout().context_form == ContextForm::ulysses)
    return r.e * r.N * (2 * r.A + r.X);
  return 4 * r.N * 2 * r.KV * 3;  // present and arriving keys and values, and their gradients
}

// Ring: forward sends keys and values around once. Backward sends them around with their gradients, which make one more
// turn. Ulysses: forward exchanges q, k, v and the output. Backward exchanges the output, its gradient, and the gradients of
// q, k, v.
ContextExchanges context_exchanges(const RankSizes& r) {
  const int64_t n = r.mesh.size(Axis::context);
  if (n == 1) return {};
  if (r.mesh.layout().context_form == ContextForm::ulysses) {
    // To heads: sends this rank's rows of the other ranks' heads. Back: sends the other ranks' rows of this rank's heads.
    const int64_t here = r.N, others = r.m.tokens() - r.N;
    const int64_t out_qkv = r.e * here * r.X / n * (n - 1), out_o = r.e * here * r.A / n * (n - 1);
    const int64_t back_qkv = r.e * others * r.X / n, back_o = r.e * others * r.A / n;
    return {.forward = {2, out_qkv + back_o}, .backward = {3, 2 * out_o + back_qkv}};
  }
  int64_t turned = 0, all = 0;  // rows that this rank sends: in all turns but the last, and in all turns
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

#include "model/layers/vocabulary_loss_facts.h"

#include <algorithm>

#include "model/layers/representation_facts.h"

namespace megalith {

int64_t vocabulary_chunk_rows(int64_t vocab, int64_t hidden) {
  // Every chunk reads the table twice and its gradient once, so chunks are large: 48 MiB of float32 logits, or two thirds of
  // the size of the table if that is more.
  constexpr int64_t kElements = int64_t{12} << 20;
  const int64_t rows = std::max(kElements / vocab, std::min<int64_t>(512, hidden * 2 / 3));
  return std::clamp<int64_t>(rows / 16 * 16, 32, 1024);
}

BlockCosts head_facts(const RankSizes& r, const HeadForm& form) {
  if (r.s.head == HeadKind::representation) return representation_facts(r, !form.pools_layer);
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, V = r.V;
  BlockCosts f;
  const auto rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(N) * r.m.target_fraction + 0.999));
  const int64_t chunk = std::min(rows, vocabulary_chunk_rows(r.s.vocab, C)), mine = r.mine(rows);
  const double transform = form.transform ? static_cast<double>(C * C) : 0;
  const auto table = static_cast<double>(V * C);
  f.forward.flop = 2.0 * (static_cast<double>(rows) * table + static_cast<double>(mine) * transform);
  f.backward.flop = 2 * f.forward.flop;
  f.forward.touched_bytes = e * (rows * 2 * V + mine * 6 * C);
  f.backward.touched_bytes = e * (rows * 2 * V + mine * 8 * C);
  f.output_bytes = 0;
  // Besides a chunk of logits: the selected rows (if some have no target), the normed rows and their gradient, and the
  // transform. If rows are shared, also all normed rows, and all rows of a summand of their gradient.
  const int64_t around = (rows < N ? 3 : 2) + (form.transform ? 2 : 0);
  const int64_t gathered = r.shares_rows() ? 2 * rows : 0;
  const int64_t logits = (e < 4 ? e + 4 : e) * chunk * V + r.product_bytes(V, C);
  // The outgoing gradient, [S, C], is allocated only at the end.
  const int64_t at_logits = logits + e * (gathered + (around - (gathered ? 1 : 0)) * mine - S) * C;
  const int64_t at_end = e * (gathered + (around + (form.transform ? 3 : 1)) * mine) * C;
  f.workspace_bytes = std::max(at_logits, at_end) + 4 * chunk;
  if (!r.shares_rows()) return f;
  const int64_t chunks = (rows + chunk - 1) / chunk, sums = rows * 3 * 8 * (r.mesh.size(Axis::tensor) - 1);
  f.forward.exchanges[Axis::tensor] = {1 + chunks, r.gather_bytes(rows) + sums};
  f.backward.exchanges[Axis::tensor] = {1, r.sum_bytes(rows)};
  return f;
}

}  // namespace megalith

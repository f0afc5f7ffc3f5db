#include "model/layers/table_facts.h"

#include <algorithm>

namespace megalith {
namespace {

// Workspace: the copy that dropout makes, the recomputed norm and its gradient, and rows in the gradient's type. If the
// table is split, also all rows of the gradient, and the rows of this rank's ids.
int64_t workspace(const RankSizes& r, const EmbeddingForm& form) {
  const int64_t copies = (r.s.dropout.embedding > 0 ? 1 : 0) + (form.norm ? 2 : 0);
  const int64_t gathered = r.shares_rows() ? r.e * (r.N + (r.N + r.mesh.size(Axis::tensor) - 1) / r.mesh.size(Axis::tensor)) * r.C : 0;
  const int64_t positions = r.mesh.divides_rows() && form.learned_positions ? r.e * r.S * r.C : 0;  // looked up one by one
  return std::max(positions, r.e * r.S * copies * r.C + (r.e < 4 ? 4 * r.N * r.C / r.mesh.size(Axis::tensor) : 0) + gathered);
}

}  // namespace

BlockCosts embedding_facts(const RankSizes& r, const EmbeddingForm& form) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C;
  BlockCosts f;
  f.backward_uses_parameters = form.norm;
  f.output_bytes = e * S * C;
  f.forward.touched_bytes = e * (r.shares_rows() ? 3 * N + 3 * S : 4 * N) * C;
  f.backward.touched_bytes = e * (r.shares_rows() ? 4 * N + 4 * S : 6 * N) * C;
  f.saved_bytes = form.norm ? S * r.kept.row(C) : 0;
  f.workspace_bytes = workspace(r, form) + (form.norm ? S * r.kept.more(C) : 0);
  f.sparse_gradient_bytes = r.s.ties_table() ? 4 * std::min(N, (r.V + r.m.micros - 1) / r.m.micros) * C : 0;
  if (!r.shares_rows()) return f;
  f.forward.exchanges[Axis::tensor] = {1, r.sum_bytes(N)};
  f.backward.exchanges[Axis::tensor] = {1, r.gather_bytes(N)};
  return f;
}

}  // namespace megalith

#include "model/layers/representation_facts.h"

#include <algorithm>

namespace megalith {
namespace {

constexpr int64_t kNumber = 4;

// Every rank compares all sequences: it needs those of the other ranks for the gradients of its own.
void compare(const RankSizes& r, BlockCosts& f) {
  const Compared& all = r.m.compared;
  if (all.columns == 0) return;
  const int64_t C = r.C, S = all.sequences, pairs = S / all.columns, candidates = S - pairs;
  const double product = 2.0 * static_cast<double>(pairs) * static_cast<double>(candidates) * static_cast<double>(C);
  f.batch.flop = 3 * product;  // similarities, and the gradients of both sides
  if (all.symmetric) f.batch.flop += 3 * product * static_cast<double>(pairs) / static_cast<double>(candidates);
  f.batch.touched_bytes = kNumber * (4 * pairs * candidates + 12 * S * C);
  // The vectors of all sequences, of length 1, sorted by column, their gradients in both orders, and temporaries.
  f.batch_workspace_bytes = kNumber * (8 * S * C + (std::min(pairs, kAnchorsAtOnce) + 2) * candidates) + 64 * S;
  if (all.ranks > 1) f.batch.exchanges[Axis::data] = {1, kNumber * (S / all.ranks) * C * (all.ranks - 1)};
}

}  // namespace

BlockCosts representation_facts(const RankSizes& r, bool norm) {
  BlockCosts f;
  const int64_t rows = r.e * r.S * r.C, pooled = kNumber * r.m.sequences * r.C;
  f.output_bytes = pooled;
  f.forward.touched_bytes = (norm ? 3 : 1) * rows + pooled;
  f.backward.touched_bytes = (norm ? 5 : 1) * rows + pooled;
  // The normed rows, the gradient of the outputs, and one sequence in float32.
  f.workspace_bytes = (norm ? 3 : 0) * rows + pooled + (norm ? 16 * r.S : 0) + kNumber * r.m.length * r.C;
  for (Axis axis : {Axis::tensor, Axis::context})
    if (r.mesh.size(axis) > 1) f.forward.exchanges[axis] = {1, pooled * (r.mesh.size(axis) - 1)};
  compare(r, f);
  return f;
}

}  // namespace megalith

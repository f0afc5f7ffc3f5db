#include "model/token_dropping_facts.h"

#include <algorithm>

#include "families/family.h"

namespace megalith {

// The layer computes only the kept rows, which are copied out and back. If rows are split over ranks, some ranks hold more
// kept rows than others. The facts count the most that this rank may hold.
BlockCosts token_dropping_facts(const BlockSpec& spec, const RankSizes& r) {
  MicroBatchShape fewer = r.m;
  fewer.length = r.m.kept;
  const RankSizes kept{r.s, r.mesh, fewer, r.e, r.kept};
  BlockCosts f = r.s.family->facts(spec, kept);
  const int64_t beside = f.saved_bytes + f.output_bytes;
  const int64_t e = r.e, C = r.C, here = e * r.S * C, rows = e * kept.S * C, all = e * fewer.tokens() * C;
  const bool tensor = r.mesh.size(Axis::tensor) > 1, context = r.mesh.size(Axis::context) > 1;
  f.forward.touched_bytes += 2 * here + 4 * (r.mesh.divides_rows() ? all : rows);
  f.backward.touched_bytes += 2 * here + 4 * (r.mesh.divides_rows() ? all : rows);
  f.output_bytes = here;
  // The tape holds the kept rows of the input, not the input. The input is counted as the output of the previous block until
  // the backward of this block.
  if (!f.packs_input) {
    f.saved_bytes = std::max<int64_t>(0, f.saved_bytes + rows - here);
    f.attention_saved_bytes = std::max<int64_t>(0, f.attention_saved_bytes + rows - here);
  }
  // Forward ends with the computed rows, which are gathered and split again, and with all rows of this rank. A recomputation
  // holds all rows besides what the layer needs. Backward does not.
  const int64_t lie_here = std::min(here, all), lie_in_context = std::min(e * r.N * C, all);
  const int64_t taking = std::max({tensor ? lie_here + lie_in_context : 0, context ? lie_in_context + all : 0, all + rows});
  const int64_t in_context = e * kept.N * C;
  const int64_t putting = std::max({tensor ? rows + in_context : 0, context ? in_context + all : 0, all + lie_here});
  const int64_t around = r.mesh.divides_rows() ? std::max(taking, putting) : rows;
  f.workspace_bytes = here + std::max(f.workspace_bytes, around);
  // A backward that defers weight gradients does not recompute.
  f.deferring_workspace_bytes += 2 * rows - here + beside - f.saved_bytes - f.output_bytes;
  f.deferring_workspace_bytes = std::max(f.deferring_workspace_bytes, around - f.saved_bytes);
  // Kept rows are gathered before the layer and after it. A recomputation gathers them again before the layer, unless the
  // attention half was kept. It does not put rows back.
  const auto add = [&f](Axis axis, int64_t bytes) {
    const auto to = [axis, bytes](BlockWork& work, int64_t times) {
      ExchangeFacts& it = work.exchanges[axis];
      it = {it.calls + times, it.bytes + times * bytes};
    };
    to(f.forward, 2);
    to(f.backward, 2);
    to(f.attention, 1);
    to(f.output, 1);
  };
  if (tensor) add(Axis::tensor, kept.gather_bytes(kept.N));
  if (context) add(Axis::context, e * kept.N * C * (r.mesh.size(Axis::context) - 1));
  return f;
}

}  // namespace megalith

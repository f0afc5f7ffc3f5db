#include "model/layer_facts.h"

#include <algorithm>

#include "model/layers/attention_facts.h"

namespace megalith {
namespace {

// Workspace is what a layer's backward has alive besides its saved tensors, the gradient that comes in and the one
// that goes out (which takes its place only at the end: one C less until then). Backward's exceeds forward's. Counts
// follow the code of decoder_layer.h, bert/blocks.cpp and layers/ line by line: a tensor lives to the end of its scope.

int64_t kept_sums(const LayerForm& form) { return form.post_norm ? 2 : 1; }

// While the feed-forward half goes back: what dropout copies and, where rows are shared, all rows of the norm's output and
// of the gradient. The norm's output takes the outgoing gradient's place.
int64_t feed_forward_workspace(const RankSizes& r, const LayerForm& form) {
  const int64_t gathered = r.shares_rows() ? 2 * r.e * r.N * r.C : 0;
  return gathered + r.e * r.S * (r.s.dropout.residual > 0 ? r.C : 0) + form.half.workspace_bytes;
}

// While the attention half goes back; the feed-forward's pre-activation and one kept sum are gone by then.
int64_t attention_workspace(const RankSizes& r, const LayerForm& form) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, A = r.A, X = r.X;
  const int64_t gone = form.half.plain_bytes + e * S * C;
  // Gradients of the stream (a post-norm layer keeps more of them), without the outgoing one's place.
  const int64_t stream = e * S * (form.post_norm ? 3 : 0) * C - gone;
  // Of the heads' input: dropout's copy, or all rows.
  const int64_t output = r.shares_rows() ? N * C : r.s.dropout.residual > 0 ? S * C : 0;
  const int64_t heads = stream + e * (output + N * (A + X)) +
                        std::max({wide_attention_bytes(r), r.product_bytes(C, X), context_workspace(r)});
  // Where rows are shared: all rows of the norm's output, then of a summand of the input's gradient, and its share.
  const int64_t summed = r.shares_rows() ? stream + e * (output + N * C + 2 * S * C) : 0;
  return std::max(heads, summed);
}

// A backward that defers its weight gradients. Of each of a layer's four products, input and output gradient wait: what
// the norms left, the heads' output, the activation; what the stream's gradient was, and those of q, k, v and the
// pre-activation. The workspace is the most that is there at a time, without all that is counted beside it: the tape,
// those waiting, the gradient that comes in and the one that goes out.
void add_deferring(BlockCosts& f, const RankSizes& r, const LayerForm& form) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, A = r.A, X = r.X;
  const HalfFacts& half = form.half;
  const bool copies = r.shares_rows() || r.s.dropout.residual > 0;
  f.deferred_bytes = half.deferred_bytes + e * N * (2 * C + A + X);
  f.weight_gradient_workspace_bytes = std::max(r.product_bytes(half.weight_rows, C), r.product_bytes(C, X));
  // The feed-forward half: the norm's output and, where rows are shared, all rows of it and of the gradient.
  const int64_t normed = S * C + (r.shares_rows() ? 2 * N * C : r.s.dropout.residual > 0 ? S * C : 0);
  const int64_t sums = half.routes || !r.kept.packs() ? 0 : S * kept_sums(form) * C;  // unpacked
  const int64_t at_feed_forward = f.saved_bytes + half.unpacked_bytes +
                                  e * (sums + normed + (form.post_norm ? S * C : 0)) + half.deferring_bytes;
  // The attention half: what the other half left; a post-norm layer's stream has more gradients, and sums.
  const int64_t beside_half = half.routes ? 0 : r.shares_rows() ? 2 * N * C : S * C + (copies ? S * C : 0);
  const int64_t left = half.left_bytes + e * beside_half;
  const int64_t stream = S * C * (form.post_norm ? 4 : 1) + (r.shares_rows() ? N * C : copies ? S * C : 0);
  const int64_t at_heads = f.attention_saved_bytes + left + e * (stream + N * (A + X) * (r.kept.packs() ? 2 : 1)) +
                           std::max(wide_attention_bytes(r), context_workspace(r));
  // The end: all that waits, the summand of the input's gradient and what it becomes.
  const int64_t input = N * C + (r.shares_rows() ? S * C : 0);
  const int64_t at_end = left + e * (stream + N * (A + X) + (form.post_norm ? 0 : S * C) + (r.shares_rows() ? N * C : 0) +
                                     input + S * C);
  const int64_t beside = f.saved_bytes + f.deferred_bytes + f.output_bytes;  // without the gradient that comes in
  f.deferring_workspace_bytes = std::max({at_feed_forward, at_heads, at_end}) - beside;
}

// Forward gathers rows and adds up rows twice; backward gathers the norm's output and the gradient, and adds up, twice.
// Along the expert axis rows travel to their experts and back; backward, their gradients do, and the rows once more.
// Besides, it exchanges how many rows come, their weights, and backward the gradients of those weights. Along the context
// axis the router's logits come together after attention's own exchanges.
// A recomputation ends before the feed-forward half's last product, so it leaves out the exchanges of the result. The
// second norm of a post-norm layer needs that result.
void add_exchanges(BlockCosts& f, const RankSizes& r, const LayerForm& form) {
  if (form.half.routes && r.mesh.size(Axis::expert) > 1) {
    const int64_t one_way = form.half.expert_bytes;
    f.forward.exchanges[Axis::expert] = {4, 2 * one_way};
    f.backward.exchanges[Axis::expert] = {6, 3 * one_way};
    if (!form.post_norm) f.output.exchanges[Axis::expert] = {2, one_way};  // the weights of rows, and rows on their way back
  }
  if (r.mesh.size(Axis::tensor) > 1) {
    const int64_t gather = r.gather_bytes(r.N), sum = r.sum_bytes(r.N);
    f.forward.exchanges[Axis::tensor] = {4, 2 * gather + 2 * sum};
    f.backward.exchanges[Axis::tensor] = {6, 4 * gather + 2 * sum};
    f.attention.exchanges[Axis::tensor] = {1, gather};
    if (!form.post_norm) f.output.exchanges[Axis::tensor] = {1, sum};
  }
  const ContextExchanges context = context_exchanges(r);
  const int64_t logits = form.half.context_bytes;
  f.attention.exchanges[Axis::context] = context.forward;
  f.forward.exchanges[Axis::context] = {context.forward.calls + (logits > 0 ? 1 : 0), context.forward.bytes + logits};
  f.backward.exchanges[Axis::context] = context.backward;
}

// Tensors are there unpacked while they are used; in the attention half those that are gone were smaller. Forward
// has them all before they are packed, and the norm's output and the activation.
void add_packing(BlockCosts& f, const RankSizes& r, const LayerForm& form) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, A = r.A, X = r.X, sums = kept_sums(form);
  const int64_t feed_forward = form.half.plain_bytes - form.half.saved_bytes + S * sums * r.kept.more(C);
  f.workspace_bytes = std::max({feed_forward_workspace(r, form) + feed_forward,
                                attention_workspace(r, form) + feed_forward + N * (r.kept.more(X) + r.kept.more(A)),
                                feed_forward + form.half.activation_bytes + e * S * (2 - sums) * C});
  const int64_t packing = 2 * f.saved_bytes + form.half.plain_bytes + e * (N * (X + A) + S * (1 + sums) * C);
  f.forward.touched_bytes += packing;
  f.backward.touched_bytes += packing;
}

}  // namespace

BlockCosts layer_facts(const RankSizes& r, const LayerForm& form) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, A = r.A, X = r.X;
  BlockCosts f;
  const double products = 2.0 * static_cast<double>(N) * static_cast<double>(C * (X + A) + form.half.weights) + form.half.flop;
  const double scores = score_flop(r);
  f.forward.flop = products + scores;
  f.backward.flop = 2 * products + 2.5 * scores;
  f.weight_flop = products;
  // Passes over memory besides the products: two norms, two additions, the activation, the heads' layout; all rows
  // gathered and summands added up.
  const int64_t shared = r.shares_rows() ? e * N * C : 0;
  f.forward.touched_bytes = e * S * 10 * C + e * N * 2 * X + form.half.touched_bytes + 6 * shared;
  f.backward.touched_bytes = e * S * 20 * C + e * N * 4 * X + 2 * form.half.touched_bytes + 10 * shared;
  f.packs_input = r.kept.packs();
  f.attention_saved_bytes = N * r.kept.row(A) + (f.packs_input ? S * r.kept.row(C) : 0) + scored_bytes(r);
  f.saved_bytes = f.attention_saved_bytes + form.half.saved_bytes + S * kept_sums(form) * r.kept.row(C);
  f.attention = {2.0 * static_cast<double>(N * C * X) + scores, e * (S * 3 * C + N * 2 * X)};
  // The second norm of a post-norm layer needs the sum that the last product adds to.
  if (!form.post_norm) f.output = form.half.output;
  f.output_bytes = e * S * C;
  f.workspace_bytes = std::max(feed_forward_workspace(r, form), attention_workspace(r, form));
  add_exchanges(f, r, form);
  add_deferring(f, r, form);
  if (r.kept.packs()) add_packing(f, r, form);
  return f;
}

}  // namespace megalith

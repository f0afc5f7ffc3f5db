#include "model/layer_facts.h"

#include <algorithm>

#include "model/layers/attention_facts.h"

namespace megalith {
namespace {

// Workspace is the memory that the backward of a layer needs besides its saved tensors, the incoming gradient and the
// outgoing gradient. The outgoing gradient exists only at the end, so until then the workspace counts one [S, C] less.
// Backward needs more workspace than forward. The counts follow the code of decoder_layer.h, bert/blocks.cpp and layers/
// line by line: a tensor lives to the end of its scope.

// The number of sums of the residual stream that a layer keeps.
int64_t kept_sums(const LayerForm& form) { return form.post_norm ? 2 : 1; }

// Workspace in the backward of the feed-forward half: the copy that dropout makes and, if rows are shared, all rows of the
// norm's output and of the gradient. The norm's output takes the place of the outgoing gradient.
int64_t feed_forward_workspace(const RankSizes& r, const LayerForm& form) {
  const int64_t gathered = r.shares_rows() ? 2 * r.e * r.N * r.C : 0;
  return gathered + r.e * r.S * (r.s.dropout.residual > 0 ? r.C : 0) + form.half.workspace_bytes;
}

// Workspace in the backward of the attention half. The feed-forward's pre-activation and one kept sum are freed before it.
int64_t attention_workspace(const RankSizes& r, const LayerForm& form) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, A = r.A, X = r.X;
  const int64_t gone = form.half.plain_bytes + e * S * C;
  // Gradients of the residual stream (a post-norm layer keeps more gradients), without the outgoing gradient.
  const int64_t stream = e * S * (form.post_norm ? 3 : 0) * C - gone;
  // Gradient of the output projection's result: all its rows, or the copy that dropout makes.
  const int64_t output = r.shares_rows() ? N * C : r.s.dropout.residual > 0 ? S * C : 0;
  const int64_t heads = stream + e * (output + N * (A + X)) +
                        std::max({wide_attention_bytes(r), r.product_bytes(C, X), context_workspace(r)});
  // If rows are shared, all rows of the norm's output exist first. Later, all rows of a summand of the input gradient exist,
  // with this rank's rows of the sum.
  const int64_t summed = r.shares_rows() ? stream + e * (output + N * C + 2 * S * C) : 0;
  return std::max(heads, summed);
}

// Adds the costs of a backward that defers its weight gradients. Each of the four products of a layer keeps its input and
// the gradient of its output. The inputs are the outputs of both norms, the heads' output and the activation. The gradients
// are those of the residual stream (twice), of q, k, v, and of the pre-activation. The workspace is the peak memory without
// what is counted elsewhere: the tape, the deferred tensors, the incoming gradient and the outgoing gradient.
void add_deferring(BlockCosts& f, const RankSizes& r, const LayerForm& form) {
  const int64_t e = r.e, N = r.N, S = r.S, C = r.C, A = r.A, X = r.X;
  const HalfFacts& half = form.half;
  const bool copies = r.shares_rows() || r.s.dropout.residual > 0;
  f.deferred_bytes = half.deferred_bytes + e * N * (2 * C + A + X);
  f.weight_gradient_workspace_bytes = std::max(r.product_bytes(half.weight_rows, C), r.product_bytes(C, X));
  // Feed-forward half: the norm's output. If rows are shared, also all rows of that output and of the gradient. Otherwise
  // dropout may copy the gradient.
  const int64_t normed = S * C + (r.shares_rows() ? 2 * N * C : r.s.dropout.residual > 0 ? S * C : 0);
  const int64_t sums = half.routes || !r.kept.packs() ? 0 : S * kept_sums(form) * C;  // unpacked
  const int64_t at_feed_forward = f.saved_bytes + half.unpacked_bytes +
                                  e * (sums + normed + (form.post_norm ? S * C : 0)) + half.deferring_bytes;
  // Attention half: the tensors that the feed-forward half left, and gradients of the residual stream. A post-norm layer has
  // more gradients, and also sums.
  const int64_t beside_half = half.routes ? 0 : r.shares_rows() ? 2 * N * C : S * C + (copies ? S * C : 0);
  const int64_t left = half.left_bytes + e * beside_half;
  const int64_t stream = S * C * (form.post_norm ? 4 : 1) + (r.shares_rows() ? N * C : copies ? S * C : 0);
  const int64_t at_heads = f.attention_saved_bytes + left + e * (stream + N * (A + X) * (r.kept.packs() ? 2 : 1)) +
                           std::max(wide_attention_bytes(r), context_workspace(r));
  // At the end: everything that is deferred, the summand of the input gradient, and the gradient made from it.
  const int64_t input = N * C + (r.shares_rows() ? S * C : 0);
  const int64_t at_end = left + e * (stream + N * (A + X) + (form.post_norm ? 0 : S * C) + (r.shares_rows() ? N * C : 0) +
                                     input + S * C);
  const int64_t beside = f.saved_bytes + f.deferred_bytes + f.output_bytes;  // without the incoming gradient
  f.deferring_workspace_bytes = std::max({at_feed_forward, at_heads, at_end}) - beside;
}

// Tensor axis: each half gathers rows and reduces rows in forward. In backward it gathers the norm's output and the
// gradient, and reduces rows.
// Expert axis: forward sends rows to their experts and back. Backward sends the gradients both ways, and the rows once more.
// Both also exchange the number of rows and the weights of the rows. Backward exchanges the gradients of those weights, too.
// Context axis: attention has its own exchanges, then the router's logits are gathered.
// A recomputation ends before the last product of the feed-forward half, so it skips the exchanges of the result. The
// second norm of a post-norm layer needs that result.
void add_exchanges(BlockCosts& f, const RankSizes& r, const LayerForm& form) {
  if (form.half.routes && r.mesh.size(Axis::expert) > 1) {
    const int64_t one_way = form.half.expert_bytes;
    f.forward.exchanges[Axis::expert] = {4, 2 * one_way};
    f.backward.exchanges[Axis::expert] = {6, 3 * one_way};
    if (!form.post_norm) f.output.exchanges[Axis::expert] = {2, one_way};  // the weights of the rows, and the rows sent back
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

// Adds the memory and the traffic of packing and unpacking kept tensors. Backward unpacks a tensor while it uses it. Tensors
// that are freed before the attention half were packed, so freeing them gains less memory. Forward has all tensors unpacked
// before it packs them, together with the output of the norm and of the activation function.
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
  // Memory traffic besides the products: two norms, two additions, the activation and the heads' layout. If rows are shared,
  // also gathering all rows and adding up summands.
  const int64_t shared = r.shares_rows() ? e * N * C : 0;
  f.forward.touched_bytes = e * S * 10 * C + e * N * 2 * X + form.half.touched_bytes + 6 * shared;
  f.backward.touched_bytes = e * S * 20 * C + e * N * 4 * X + 2 * form.half.touched_bytes + 10 * shared;
  f.packs_input = r.kept.packs();
  f.attention_saved_bytes = N * r.kept.row(A) + (f.packs_input ? S * r.kept.row(C) : 0) + scored_bytes(r);
  f.saved_bytes = f.attention_saved_bytes + form.half.saved_bytes + S * kept_sums(form) * r.kept.row(C);
  f.attention = {2.0 * static_cast<double>(N * C * X) + scores, e * (S * 3 * C + N * 2 * X)};
  // The second norm of a post-norm layer needs the sum that includes the last product.
  if (!form.post_norm) f.output = form.half.output;
  f.output_bytes = e * S * C;
  f.workspace_bytes = std::max(feed_forward_workspace(r, form), attention_workspace(r, form));
  add_exchanges(f, r, form);
  add_deferring(f, r, form);
  if (r.kept.packs()) add_packing(f, r, form);
  return f;
}

}  // namespace megalith

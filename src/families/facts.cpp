#include "model/facts.h"

#include <algorithm>
#include <tuple>

#include "families/family.h"
#include "families/list.h"
#include "model/computing_buffer.h"
#include "model/expert_facts.h"
#include "model/layers/vocabulary_loss.h"
#include "model/packed_rows.h"
#include "model/routing/groups.h"

namespace megalith {
namespace {

// Elements of all matrices of a block that tokens are multiplied with.
double matrix_elements(const BlockSpec& spec) {
  double sum = 0;
  for (const ParameterSpec& p : spec.parameters)
    if (p.shape.size() == 2) sum += static_cast<double>(p.size());
  return sum;
}

int64_t parameter_elements(const BlockSpec& spec) {
  int64_t sum = 0;
  for (const ParameterSpec& p : spec.parameters) sum += p.size();
  return sum;
}

// How numbers are kept for backward.
struct Kept {
  int64_t e;  // bytes of a number as it is computed with
  Packing packing;
  bool packs() const { return packing != Packing::fp32; }
  int64_t row(int64_t width) const { return packs() ? packed_row_bytes(packing, width) : e * width; }
  int64_t more(int64_t width) const { return e * width - row(width); }  // of a row that is unpacked
};

// A rank's share: of heads, widths and vocabulary along the tensor axis, of positions along the context axis.
struct Share {
  const ModelShape& s;
  const Split& split;
  MicroBatchShape m;
  int64_t e;  // bytes of an element
  Kept kept;
  bool sparse = false;  // of a layer with experts

  int64_t C = s.hidden, F = s.ffn / split.tensor, D = s.head_dim(), H = s.heads / split.tensor,
          A = H * D, KV = s.kv_heads / split.tensor * D, X = A + 2 * KV;
  int64_t V = mine(s.vocab);
  int64_t N = m.sequences * context_length(m.length, split.context, split.context_rank);
  int64_t S = mine(N);  // rows between products

  bool shares_rows() const { return split.tensor > 1; }
  ExpertFacts experts() const {
    return expert_facts(s, split, m.sequences, m.length, N, e, [&](int64_t width) { return kept.row(width); });
  }
  // The feed-forward half's pre-activations as they are computed with, and as they are kept.
  int64_t pre_activation() const { return (s.family == &llama_family ? 2 : 1) * F; }  // of a row
  int64_t pre_bytes() const { return sparse ? experts().plain_bytes : e * N * pre_activation(); }
  int64_t kept_pre_bytes() const { return sparse ? experts().kept_bytes : N * kept.row(pre_activation()); }
  // q, k, v and log-sum-exp as they are kept: Ulysses' form has some heads of all rows.
  int64_t scored_bytes() const {
    const int64_t row = e * X + 4 * H;
    return split.form == ContextForm::ulysses ? m.tokens() * row / split.context : N * row;
  }
  int64_t mine(int64_t n) const {  // of n things cut along the tensor axis
    return cut_point(n, split.tensor, split.tensor_rank + 1) - cut_point(n, split.tensor, split.tensor_rank);
  }
  // All rows together, of which this rank has its share: what it sends to the others; as much as it sends of all rows'
  // sums to those who have them.
  int64_t gather_bytes(int64_t rows) const { return e * mine(rows) * (split.tensor - 1) * C; }
  int64_t sum_bytes(int64_t rows) const { return e * (rows - mine(rows)) * C; }
};

// Workspace is what a layer's backward has alive besides its saved tensors, the gradient that comes in and the one
// that goes out (which takes its place only at the end: one C less until then). Backward's exceeds forward's. Counts
// follow the code of decoder_layer.h, bert.cpp and layers/ line by line: a tensor lives to the end of its scope.

// A 16-bit product of a weight's gradient, and its float32 copy while it is added up.
int64_t product_bytes(int64_t e, int64_t rows, int64_t columns) { return e < 4 ? 6 * rows * columns : 0; }

// While the feed-forward half goes back: the norm's output, what dropout copies, and the gradient of the activations
// (which then takes the place of the pre-activation, or gives it its own). Where rows are shared, all rows of the norm's
// output, of the gradient, and of a summand of the input's gradient.
int64_t feed_forward_workspace(const Share& r) {
  const auto& [s, e, N, S, C, F] = std::tie(r.s, r.e, r.N, r.S, r.C, r.F);
  const int64_t gathered = r.shares_rows() ? 2 * e * N * C : 0;
  // The norm's output takes the outgoing gradient's place.
  const int64_t around = gathered + e * S * (s.dropout.residual > 0 ? C : 0);
  if (r.sparse) return around + r.experts().workspace_bytes;
  const int64_t down = e * N * F + product_bytes(e, F, C);
  const int64_t summed = r.shares_rows() ? e * (N * (C - (s.family == &llama_family ? 2 : 1) * F) + S * C) : 0;
  const int64_t up = std::max(e * N * C, summed);
  if (s.family != &llama_family) return around + std::max(down, up);
  const int64_t swiglu = e < 4 ? e * N * 9 * F : 0;  // its ATen form has a handful of terms
  return around + std::max({swiglu, down, product_bytes(e, 2 * F, C), up});
}

// What attention has besides its inputs, its output's gradient and that of q, k, v, while it goes back.
int64_t context_workspace(const Share& r) {
  if (r.split.context == 1) return 0;
  if (r.split.form == ContextForm::ulysses)  // heads of gradient and output; then q, k, v's gradient on its way
    return r.e * r.N * (2 * r.A + r.X);
  return 4 * r.N * 2 * r.KV * 3;  // keys and values here and coming, and their gradients
}

// While the attention half goes back; the feed-forward's pre-activation and one kept sum are gone by then.
int64_t attention_workspace(const Share& r) {
  const auto& [s, e, N, S, C, A, X] = std::tie(r.s, r.e, r.N, r.S, r.C, r.A, r.X);
  const int64_t gone = r.pre_bytes() + e * S * C;
  // Gradients of the stream (BERT's post-norm form keeps more of them), without the outgoing one's place.
  const int64_t stream = e * S * (s.family == &bert_family ? 3 : 0) * C - gone;
  // Of the heads' input: dropout's copy, or all rows.
  const int64_t output = r.shares_rows() ? N * C : s.dropout.residual > 0 ? S * C : 0;
  // 16 bits: q, k, v, the output and its gradient, and the gradients of q, k, v, in float32.
  const int64_t wide = e < 4 ? 4 * N * 2 * (X + A) : 0;
  const int64_t heads =
      stream + e * (output + N * (A + X)) + std::max({wide, product_bytes(e, C, X), context_workspace(r)});
  // Where rows are shared: all rows of the norm's output, then of a summand of the input's gradient, and its share.
  const int64_t summed = r.shares_rows() ? stream + e * (output + N * C + 2 * S * C) : 0;
  return std::max(heads, summed);
}

// A backward that puts its weight products off. Of each of a layer's four products, input and output gradient wait: what
// the norms left, the heads' output, the activation; what the stream's gradient was, and those of q, k, v and the
// pre-activation. The workspace is the most that is there at a time, without all that is counted beside it: the tape,
// those waiting, the gradient that comes in and the one that goes out.
void deferring_facts(BlockFacts& f, const Share& r) {
  const auto& [s, e, N, S, C, F, A, X] = std::tie(r.s, r.e, r.N, r.S, r.C, r.F, r.A, r.X);
  const bool bert = s.family == &bert_family, copies = r.shares_rows() || s.dropout.residual > 0;
  const int64_t wide = s.family == &llama_family ? 2 * F : F;  // pre-activation
  const ExpertFacts experts = r.sparse ? r.experts() : ExpertFacts{};
  const int64_t half = r.sparse ? experts.deferred_bytes : e * N * (wide + F + 2 * C);  // the feed-forward's
  f.deferred_bytes = half + e * N * (2 * C + A + X);
  const int64_t F_weighed = r.sparse ? std::max(s.experts.ffn, s.experts.shared) / r.split.tensor : F;
  const int64_t weighed = s.family == &llama_family ? 2 * F_weighed : F_weighed;  // the larger of the half's two
  f.weigh_workspace_bytes = std::max(product_bytes(e, weighed, C), product_bytes(e, C, X));
  // The feed-forward half: the norm's output and, where rows are shared, all rows of it and of the gradient.
  const int64_t normed = S * C + (r.shares_rows() ? 2 * N * C : s.dropout.residual > 0 ? S * C : 0);
  const int64_t input = N * C + (r.shares_rows() ? S * C : 0);
  const int64_t swiglu = e < 4 && s.family == &llama_family ? 9 * N * F : 0;
  const int64_t unpacked = r.kept.packs() ? N * wide + S * (bert ? 2 : 1) * C : 0;
  const int64_t at_feed_forward =
      r.sparse ? f.saved_bytes + r.pre_bytes() - r.kept_pre_bytes() + e * normed + experts.deferring_bytes
               : f.saved_bytes + e * (unpacked + normed + (bert ? S * C : 0) + std::max(swiglu, N * F + input));
  // The attention half: what the other half left; BERT's stream has more gradients, and sums.
  const int64_t left =
      r.sparse ? half / e : N * (wide + F) + (r.shares_rows() ? 2 * N * C : S * C + (copies ? S * C : 0));
  const int64_t stream = S * C * (bert ? 4 : 1) + (r.shares_rows() ? N * C : copies ? S * C : 0);
  const int64_t floats = e < 4 ? 4 * N * 2 * (X + A) : 0;
  const int64_t at_heads = f.attention_saved_bytes + e * (left + stream + N * (A + X) * (r.kept.packs() ? 2 : 1)) +
                           std::max(floats, context_workspace(r));
  // The end: all that waits, the summand of the input's gradient and what it becomes.
  const int64_t at_end =
      e * (left + stream + N * (A + X) + (bert ? 0 : S * C) + (r.shares_rows() ? N * C : 0) + input + S * C);
  const int64_t beside = f.saved_bytes + f.deferred_bytes + f.output_bytes;  // without the gradient that comes in
  f.deferring_workspace_bytes = std::max({at_feed_forward, at_heads, at_end}) - beside;
}

// Forward gathers rows and adds up rows twice; backward gathers the norm's output and the gradient, and adds up, twice.
// Of the ring, keys and values go round once forward, and backward with their gradients, those one turn longer. Of
// Ulysses' form, q, k, v and the output are exchanged forward; gradient and output, and q, k, v's gradient backward.
// Of layers with experts, logits come together along the context axis. Along the expert axis rows travel to their experts
// and back; backward, their gradients do, and the rows once more. Besides how many come, and
// their weights there and those's gradients back.
void layer_exchanges(BlockFacts& f, const Share& r) {
  if (r.sparse && r.split.expert > 1) {
    const int64_t sent = r.experts().sent_bytes;
    f.expert_forward = {4, 2 * sent};
    f.expert_backward = {6, 3 * sent};
  }
  const int64_t logits = r.sparse && r.split.context > 1 ? 4 * r.N * router_width(r.s.experts) * (r.split.context - 1) : 0;
  if (r.split.tensor > 1) {
    const int64_t gather = r.gather_bytes(r.N), sum = r.sum_bytes(r.N);
    f.tensor_forward = {4, 2 * gather + 2 * sum};
    f.tensor_backward = {6, 4 * gather + 2 * sum};
  }
  const int64_t n = r.split.context;
  if (n == 1) return;
  if (r.split.form == ContextForm::ulysses) {
    // To heads: of each other rank's heads, the rows here; back: of the heads here, each other rank's rows.
    const int64_t here = r.N, others = r.m.tokens() - r.N;
    const int64_t out_qkv = r.e * here * r.X / n * (n - 1), out_o = r.e * here * r.A / n * (n - 1);
    const int64_t back_qkv = r.e * others * r.X / n, back_o = r.e * others * r.A / n;
    f.context_forward = {2 + (logits > 0), out_qkv + back_o + logits};
    f.context_backward = {3, 2 * out_o + back_qkv};
    return;
  }
  int64_t turned = 0, all = 0;  // rows that pass here on their way, all but the last rank's, and all
  for (int64_t turn = 0; turn < n; turn++) {
    const int64_t source = ((r.split.context_rank - turn) % n + n) % n;
    const int64_t rows = r.m.sequences * context_length(r.m.length, n, source);
    all += rows;
    if (turn + 1 < n) turned += rows;
  }
  f.context_forward = {n - 1 + (logits > 0), r.e * turned * 2 * r.KV + logits};
  f.context_backward = {2 * n - 1, r.e * turned * 2 * r.KV + 4 * all * 2 * r.KV};
}

void layer_facts(BlockFacts& f, const BlockSpec& spec, const Share& r) {
  const auto& [s, e, N, S, C, F, A, X] = std::tie(r.s, r.e, r.N, r.S, r.C, r.F, r.A, r.X);
  const int64_t pre_activation = r.pre_activation();
  const ExpertFacts experts = r.sparse ? r.experts() : ExpertFacts{};
  const double products = r.sparse ? 2.0 * static_cast<double>(N * C * (X + A)) + experts.flop
                                   : 2.0 * static_cast<double>(N) * matrix_elements(spec);
  const double seen = s.family == &bert_family ? 1.0 : 0.5;  // the share of key positions that a query sees
  const double scores = 4.0 * static_cast<double>(N * r.m.length * A) * seen;
  f.forward_flop = products + scores;
  f.backward_flop = 2 * products + 2.5 * scores;
  f.weight_flop = products;
  // Passes over memory besides the products: two norms, two additions, the activation, the heads' layout; all rows
  // gathered and summands added up.
  const int64_t shared = r.shares_rows() ? e * N * C : 0;
  const int64_t activation = r.sparse ? experts.touched_bytes : e * N * (2 * pre_activation + F);
  f.forward_touched_bytes = e * S * 10 * C + e * N * 2 * X + activation + 6 * shared;
  f.backward_touched_bytes = e * S * 20 * C + e * N * 4 * X + 2 * activation + 10 * shared;
  const int64_t kept_sums = s.family == &bert_family ? 2 : 1;
  const Kept& kept = r.kept;
  f.packs_input = kept.packs();
  const int64_t scored = kept.packs() ? N * kept.row(X) + 4 * N * r.H : r.scored_bytes();
  f.attention_saved_bytes = N * kept.row(A) + (f.packs_input ? S * kept.row(C) : 0) + scored;
  f.saved_bytes = f.attention_saved_bytes + r.kept_pre_bytes() + S * kept_sums * kept.row(C);
  f.attention = {2.0 * static_cast<double>(N * C * X) + scores, e * (S * 3 * C + N * 2 * X)};
  // BERT's second norm needs the sum that the last product adds to.
  if (r.sparse) f.output = {experts.output_flop, experts.touched_bytes / 2};
  else if (s.family != &bert_family)
    f.output = {2.0 * static_cast<double>(N * F * C), e * (S * 2 * C + N * (pre_activation + F))};
  f.output_bytes = e * S * C;
  f.workspace_bytes = std::max(feed_forward_workspace(r), attention_workspace(r));
  layer_exchanges(f, r);
  deferring_facts(f, r);
  if (!kept.packs()) return;
  // Tensors are there unpacked while they are used; in the attention half those that are gone were smaller. Forward
  // has them all before they are packed, and the norm's output and the activation.
  const int64_t feed_forward = r.pre_bytes() - r.kept_pre_bytes() + S * kept_sums * kept.more(C);
  f.workspace_bytes = std::max(
      {feed_forward_workspace(r) + feed_forward, attention_workspace(r) + feed_forward + N * (kept.more(X) + kept.more(A)),
       feed_forward + (r.sparse ? experts.workspace_bytes : e * N * F) + e * S * (2 - kept_sums) * C});
  const int64_t packing = 2 * f.saved_bytes + r.pre_bytes() + e * (N * (X + A) + S * (1 + kept_sums) * C);
  f.forward_touched_bytes += packing;
  f.backward_touched_bytes += packing;
}

// A layer that drops: its work is that of the rows it keeps, which are copied there and back; where rows are split over
// ranks they lie unevenly, and the most that may lie here counts.
void dropping_facts(BlockFacts& f, const BlockSpec& spec, const Share& r) {
  MicroBatchShape fewer = r.m;
  fewer.length = r.m.kept;
  const Share kept{r.s, r.split, fewer, r.e, r.kept, r.sparse};
  layer_facts(f, spec, kept);
  const int64_t beside = f.saved_bytes + f.output_bytes;
  const int64_t e = r.e, C = r.C, here = e * r.S * C, rows = e * kept.S * C, all = e * fewer.tokens() * C;
  const bool tensor = r.split.tensor > 1, context = r.split.context > 1;
  f.forward_touched_bytes += 2 * here + 4 * (r.split.any() ? all : rows);
  f.backward_touched_bytes += 2 * here + 4 * (r.split.any() ? all : rows);
  f.output_bytes = here;
  // The tape has the input's rows in place of the input, which is counted as the block before's until this goes back.
  if (!f.packs_input) {
    f.saved_bytes = std::max<int64_t>(0, f.saved_bytes + rows - here);
    f.attention_saved_bytes = std::max<int64_t>(0, f.attention_saved_bytes + rows - here);
  }
  // Forward ends with the rows that were computed, which come together and are taken apart, and all that are here; made
  // again, all are there besides what the layer needs; in backward they are not.
  const int64_t lie_here = std::min(here, all), lie_in_context = std::min(e * r.N * C, all);
  const int64_t taking = std::max({tensor ? lie_here + lie_in_context : 0, context ? lie_in_context + all : 0, all + rows});
  const int64_t in_context = e * kept.N * C;
  const int64_t putting = std::max({tensor ? rows + in_context : 0, context ? in_context + all : 0, all + lie_here});
  const int64_t around = r.split.any() ? std::max(taking, putting) : rows;
  f.workspace_bytes = here + std::max(f.workspace_bytes, around);
  // Nothing is made again by who defers.
  f.deferring_workspace_bytes += 2 * rows - here + beside - f.saved_bytes - f.output_bytes;
  f.deferring_workspace_bytes = std::max(f.deferring_workspace_bytes, around - f.saved_bytes);
  auto add = [](ExchangeFacts& to, int64_t bytes) { to = {to.calls + 2, to.bytes + 2 * bytes}; };
  for (auto* to : {&f.tensor_forward, &f.tensor_backward})
    if (tensor) add(*to, kept.gather_bytes(kept.N));
  for (auto* to : {&f.context_forward, &f.context_backward})
    if (context) add(*to, e * kept.N * C * (r.split.context - 1));
}

// What dropout copies, BERT's norm again and its gradient, rows in the gradient's type; of a table that is split, all
// rows of the gradient, and those of the ids here.
int64_t embedding_workspace(const Share& r) {
  const int64_t copies = (r.s.dropout.embedding > 0 ? 1 : 0) + (r.s.family == &bert_family ? 2 : 0);
  const int64_t gathered = r.shares_rows() ? r.e * (r.N + (r.N + r.split.tensor - 1) / r.split.tensor) * r.C : 0;
  const int64_t positions = r.split.any() && r.s.family != &llama_family ? r.e * r.S * r.C : 0;  // looked up one by one
  return std::max(positions, r.e * r.S * copies * r.C + (r.e < 4 ? 4 * r.N * r.C / r.split.tensor : 0) + gathered);
}

void embedding_facts(BlockFacts& f, const Share& r) {
  const auto& [s, e, N, S, C] = std::tie(r.s, r.e, r.N, r.S, r.C);
  f.backward_uses_parameters = s.family == &bert_family;  // its norm's
  f.output_bytes = e * S * C;
  f.forward_touched_bytes = e * (r.shares_rows() ? 3 * N + 3 * S : 4 * N) * C;
  f.backward_touched_bytes = e * (r.shares_rows() ? 4 * N + 4 * S : 6 * N) * C;
  f.saved_bytes = s.family == &bert_family ? S * r.kept.row(C) : 0;
  f.workspace_bytes = embedding_workspace(r) + (s.family == &bert_family ? S * r.kept.more(C) : 0);
  f.aside_bytes = s.tied ? 4 * std::min(N, (r.V + r.m.micros - 1) / r.m.micros) * C : 0;
  if (!r.shares_rows()) return;
  f.tensor_forward = {1, r.sum_bytes(N)};
  f.tensor_backward = {1, r.gather_bytes(N)};
}

void head_facts(BlockFacts& f, const Share& r) {
  const auto& [s, e, N, S, C, V] = std::tie(r.s, r.e, r.N, r.S, r.C, r.V);
  const auto rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(N) * r.m.target_fraction + 0.999));
  const int64_t chunk = std::min(rows, VocabularyLoss::chunk_rows(s.vocab, C)), mine = r.mine(rows);
  const double transform = s.family == &bert_family ? static_cast<double>(C * C) : 0;
  const auto table = static_cast<double>(V * C);
  f.forward_flop = 2.0 * (static_cast<double>(rows) * table + static_cast<double>(mine) * transform);
  f.backward_flop = 2 * f.forward_flop;
  f.forward_touched_bytes = e * (rows * 2 * V + mine * 6 * C);
  f.backward_touched_bytes = e * (rows * 2 * V + mine * 8 * C);
  f.output_bytes = 0;
  // Around a chunk of logits: the rows selected (where not all are), normed and their gradient; BERT's transform; where
  // rows are shared, all rows normed and of a summand of their gradient.
  const int64_t around = (rows < N ? 3 : 2) + (s.family == &bert_family ? 2 : 0);
  const int64_t gathered = r.shares_rows() ? 2 * rows : 0;
  const int64_t logits = (e < 4 ? e + 4 : e) * chunk * V + product_bytes(e, V, C);
  // All but the end happens before the outgoing gradient, [S, C], is there.
  const int64_t at_logits = logits + e * (gathered + (around - (gathered ? 1 : 0)) * mine - S) * C;
  const int64_t at_end = e * (gathered + (around + (s.family == &bert_family ? 3 : 1)) * mine) * C;
  f.workspace_bytes = std::max(at_logits, at_end) + 4 * chunk;
  if (!r.shares_rows()) return;
  const int64_t chunks = (rows + chunk - 1) / chunk, sums = rows * 3 * 8 * (r.split.tensor - 1);
  f.tensor_forward = {1 + chunks, r.gather_bytes(rows) + sums};
  f.tensor_backward = {1, r.sum_bytes(rows)};
}

}  // namespace

std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    Packing packing, const Split& split) {
  const int64_t e = precision == Precision::fp32 ? 4 : 2;
  const Share share{shape, split, micro, e, {e, packing}};
  std::vector<BlockFacts> facts;
  for (const BlockSpec& spec : list_blocks(shape, split)) {
    BlockFacts f;
    f.name = spec.name;
    f.kind = spec.kind;
    f.parameters = parameter_elements(spec);
    for (const ParameterSpec& p : spec.parameters)
      if (p.of_expert && split.expert > 1) f.expert_parameters += p.size();
    f.compute_copy_bytes = precision == Precision::fp32 ? 0 : 2 * computing_elements(spec, at::kHalf);
    switch (spec.kind) {
      case BlockKind::embedding: embedding_facts(f, share); break;
      case BlockKind::layer: {
        const Share layer{shape, split, micro, e, {e, packing}, shape.experts.in_layer(spec.layer)};
        BlockFacts whole = f;
        layer_facts(whole, spec, layer);
        whole.validation_bytes = whole.saved_bytes + whole.workspace_bytes;
        if (micro.kept > 0 && std::ranges::binary_search(micro.dropping_layers, spec.layer)) {
          dropping_facts(f, spec, layer);
          f.validation_bytes = whole.validation_bytes;
        } else {
          f = std::move(whole);
        }
        break;
      }
      case BlockKind::head:
        head_facts(f, share);
        if (shape.tied) f.tied_to = 0;
        break;
    }
    facts.push_back(std::move(f));
  }
  return facts;
}

}  // namespace megalith

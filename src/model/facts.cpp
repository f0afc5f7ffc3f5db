#include "model/facts.h"

#include <algorithm>

#include "model/layers/vocabulary_loss.h"
#include "model/packed_rows.h"

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

// Workspace is what a layer's backward has alive besides its saved tensors, the gradient that comes in and the one
// that goes out (which takes its place only at the end: one C less until then). Backward's exceeds forward's. Counts
// follow the code of decoder_layer.h, bert.cpp and layers/ line by line: a tensor lives to the end of its scope.

// A 16-bit product of a weight's gradient, and its float32 copy while it is added up.
int64_t product_bytes(int64_t e, int64_t rows, int64_t columns) { return e < 4 ? 6 * rows * columns : 0; }

// While the feed-forward half goes back: the norm's output, what dropout copies, and the gradient of the activations
// (which then takes the place of the pre-activation, or gives it its own).
int64_t feed_forward_workspace(const ModelShape& s, const MicroBatchShape& m, int64_t e) {
  const int64_t N = m.tokens(), C = s.hidden, F = s.ffn;
  const int64_t around = e * N * (s.dropout.residual > 0 ? C : 0);  // the norm's output takes the outgoing gradient's place
  const int64_t down = e * N * F + product_bytes(e, F, C);
  if (s.arch != Arch::llama) return around + std::max(down, e * N * C);
  const int64_t swiglu = e < 4 ? e * N * 9 * F : 0;  // its ATen form has a handful of terms
  return around + std::max({swiglu, down, product_bytes(e, 2 * F, C), e * N * C});
}

// While the attention half goes back; the feed-forward's pre-activation and one kept sum are gone by then.
int64_t attention_workspace(const ModelShape& s, const MicroBatchShape& m, int64_t e) {
  const int64_t N = m.tokens(), C = s.hidden, A = s.attention_width(), X = A + 2 * s.kv_heads * s.head_dim();
  const int64_t gone = (s.arch == Arch::llama ? 2 : 1) * s.ffn + C;
  // Gradients of the stream (BERT's post-norm form keeps more of them) and of the heads' output.
  const int64_t around = (s.arch == Arch::bert ? 4 : 1) * C + (s.dropout.residual > 0 ? C : 0) + A - gone;
  // 16 bits: q, k, v, the output and its gradient, and the gradients of q, k, v, in float32.
  const int64_t wide = e < 4 ? 4 * N * 2 * (X + A) : 0;
  return e * N * (around - C + X) + std::max(wide, product_bytes(e, C, X));
}

// How numbers are kept for backward.
struct Kept {
  int64_t e;  // bytes of a number as it is computed with
  Packing packing;
  bool packs() const { return packing != Packing::fp32; }
  int64_t row(int64_t width) const { return packs() ? packed_row_bytes(packing, width) : e * width; }
  int64_t more(int64_t width) const { return e * width - row(width); }  // of a row that is unpacked
};

void layer_facts(BlockFacts& f, const BlockSpec& spec, const ModelShape& s, const MicroBatchShape& m, const Kept& kept) {
  const int64_t e = kept.e;
  const int64_t N = m.tokens(), C = s.hidden, F = s.ffn, A = s.attention_width(), X = A + 2 * s.kv_heads * s.head_dim();
  const int64_t pre_activation = s.arch == Arch::llama ? 2 * F : F;
  const double products = 2.0 * static_cast<double>(N) * matrix_elements(spec);
  const double seen = s.arch == Arch::bert ? 1.0 : 0.5;  // the share of key positions that a query sees
  const double scores = 4.0 * static_cast<double>(N * m.length * A) * seen;
  f.forward_flop = products + scores;
  f.backward_flop = 2 * products + 2.5 * scores;
  // Passes over memory besides the products: two norms, two additions, the activation, the heads' layout.
  f.forward_touched_bytes = e * N * (10 * C + 2 * X + 2 * pre_activation + F);
  f.backward_touched_bytes = e * N * (20 * C + 4 * X + 4 * pre_activation + 2 * F);
  const int64_t kept_sums = s.arch == Arch::bert ? 2 : 1;
  f.packs_input = kept.packs();
  f.attention_saved_bytes = N * (kept.row(X) + kept.row(A) + (f.packs_input ? kept.row(C) : 0)) + 4 * N * s.heads;
  f.saved_bytes = f.attention_saved_bytes + N * (kept.row(pre_activation) + kept_sums * kept.row(C));
  f.attention = {2.0 * static_cast<double>(N * C * X) + scores, e * N * (3 * C + 2 * X)};
  // BERT's second norm needs the sum that the last product adds to.
  if (s.arch != Arch::bert) f.output = {2.0 * static_cast<double>(N * F * C), e * N * (2 * C + pre_activation + F)};
  f.output_bytes = e * N * C;
  f.workspace_bytes = std::max(feed_forward_workspace(s, m, e), attention_workspace(s, m, e));
  if (!kept.packs()) return;
  // Tensors are there unpacked while they are used; in the attention half those that are gone were smaller. Forward
  // has them all before they are packed, and the norm's output and the activation.
  const int64_t feed_forward = N * (kept.more(pre_activation) + kept_sums * kept.more(C));
  f.workspace_bytes = std::max({feed_forward_workspace(s, m, e) + feed_forward,
                                attention_workspace(s, m, e) + feed_forward + N * (kept.more(X) + kept.more(A)),
                                feed_forward + e * N * (F + (2 - kept_sums) * C)});
  const int64_t packing = 2 * f.saved_bytes + e * N * (X + A + pre_activation + (1 + kept_sums) * C);
  f.forward_touched_bytes += packing;
  f.backward_touched_bytes += packing;
}

// A layer that drops: its work is that of the rows it keeps, which are copied there and back.
void dropping_facts(BlockFacts& f, const BlockSpec& spec, const ModelShape& s, const MicroBatchShape& m, const Kept& kept) {
  MicroBatchShape fewer = m;
  fewer.length = m.kept;
  layer_facts(f, spec, s, fewer, kept);
  const int64_t all = kept.e * m.tokens() * s.hidden, rows = kept.e * fewer.tokens() * s.hidden;
  f.forward_touched_bytes += 2 * all + 4 * rows;
  f.backward_touched_bytes += 2 * all + 4 * rows;
  f.output_bytes = all;
  // The tape has the input's rows in place of the input, which is counted as the block before's until this goes back.
  if (!f.packs_input) {
    f.saved_bytes = std::max<int64_t>(0, f.saved_bytes + rows - all);
    f.attention_saved_bytes = std::max<int64_t>(0, f.attention_saved_bytes + rows - all);
  }
  f.workspace_bytes += 2 * rows + all;
}

// What dropout copies, BERT's norm again and its gradient, rows in the gradient's type.
int64_t embedding_workspace(const ModelShape& s, int64_t N, int64_t e) {
  const int64_t copies = (s.dropout.embedding > 0 ? 1 : 0) + (s.arch == Arch::bert ? 2 : 0);
  return e * N * copies * s.hidden + (e < 4 ? 4 * N * s.hidden : 0);
}

void head_facts(BlockFacts& f, const ModelShape& s, const MicroBatchShape& m, int64_t e) {
  const int64_t N = m.tokens(), C = s.hidden;
  const auto rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(N) * m.target_fraction + 0.999));
  const int64_t chunk = std::min(rows, VocabularyLoss::chunk_rows(s.vocab, C));
  const double transform = s.arch == Arch::bert ? static_cast<double>(C * C) : 0;
  f.forward_flop = 2.0 * static_cast<double>(rows) * (static_cast<double>(s.vocab * C) + transform);
  f.backward_flop = 2 * f.forward_flop;
  f.forward_touched_bytes = e * rows * (2 * s.vocab + 6 * C);
  f.backward_touched_bytes = e * rows * (2 * s.vocab + 8 * C);
  f.output_bytes = 0;
  // Around a chunk of logits: the rows selected (where not all are), normed and their gradient; BERT's transform.
  const int64_t around = (rows < N ? 3 : 2) + (s.arch == Arch::bert ? 2 : 0);
  const int64_t logits = (e < 4 ? e + 4 : e) * chunk * s.vocab + product_bytes(e, s.vocab, C);
  // All but the end happens before the outgoing gradient, [N, C], is there.
  const int64_t at_logits = logits + e * (around * rows - N) * C;
  const int64_t at_end = e * (around + (s.arch == Arch::bert ? 3 : 1)) * rows * C;
  f.workspace_bytes = std::max(at_logits, at_end) + 4 * chunk;
}

}  // namespace

std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    Packing packing) {
  const int64_t e = precision == Precision::fp32 ? 4 : 2, N = micro.tokens(), C = shape.hidden;
  const Kept kept{e, packing};
  std::vector<BlockFacts> facts;
  for (const BlockSpec& spec : list_blocks(shape)) {
    BlockFacts f;
    f.name = spec.name;
    f.kind = spec.kind;
    f.parameters = parameter_elements(spec);
    f.compute_copy_bytes = precision == Precision::fp32 ? 0 : 2 * spec.flat_size;
    switch (spec.kind) {
      case BlockKind::embedding:
        f.backward_uses_parameters = shape.arch == Arch::bert;  // its norm's
        f.output_bytes = e * N * C;
        f.forward_touched_bytes = e * N * 4 * C;
        f.backward_touched_bytes = e * N * 6 * C;
        f.saved_bytes = shape.arch == Arch::bert ? N * kept.row(C) : 0;
        f.workspace_bytes = embedding_workspace(shape, N, e) + (shape.arch == Arch::bert ? N * kept.more(C) : 0);
        f.aside_bytes = shape.tied ? 4 * std::min(N, (shape.vocab + micro.micros - 1) / micro.micros) * C : 0;
        break;
      case BlockKind::layer:
        if (micro.kept > 0 && std::ranges::binary_search(micro.dropping_layers, spec.layer))
          dropping_facts(f, spec, shape, micro, kept);
        else
          layer_facts(f, spec, shape, micro, kept);
        break;
      case BlockKind::head:
        head_facts(f, shape, micro, e);
        if (shape.tied) f.tied_to = 0;
        break;
    }
    facts.push_back(std::move(f));
  }
  return facts;
}

}  // namespace megalith

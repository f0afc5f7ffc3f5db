#include "model/facts.h"

#include <algorithm>

#include "model/layers/vocabulary_loss.h"

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

void layer_facts(BlockFacts& f, const BlockSpec& spec, const ModelShape& s, const MicroBatchShape& m, int64_t e, bool tiled) {
  const int64_t N = m.tokens(), C = s.hidden, F = s.ffn, X = (s.heads + 2 * s.kv_heads) * s.head_dim();
  const int64_t pre_activation = s.arch == Arch::llama ? 2 * F : F;
  const double products = 2.0 * static_cast<double>(N) * matrix_elements(spec);
  const double seen = s.arch == Arch::bert ? 1.0 : 0.5;  // the share of key positions that a query sees
  const double scores = 4.0 * static_cast<double>(N * m.length * C) * seen;
  f.forward_flop = products + scores;
  f.backward_flop = 2 * products + 2.5 * scores;
  // Passes over memory besides the products: two norms, two additions, the activation, the heads' layout.
  f.forward_touched_bytes = e * N * (10 * C + 2 * X + 2 * pre_activation + F);
  f.backward_touched_bytes = e * N * (20 * C + 4 * X + 4 * pre_activation + 2 * F);
  const int64_t kept_sums = s.arch == Arch::bert ? 2 : 1;
  f.saved_bytes = e * N * (X + C + pre_activation + kept_sums * C) + 4 * N * s.heads;
  f.output_bytes = e * N * C;
  // Largest at the feed-forward's backward: the activation again and its gradient, the norm's output, gradients
  // of the stream. Repeated key and value heads and a tile of scores where there are such.
  const int64_t feed_forward = e * N * (F + pre_activation + 4 * C);
  const int64_t repeated = s.kv_heads < s.heads ? 4 * C : 0;
  int64_t attention = e * N * (2 * X + 4 * C + repeated);
  if (tiled) attention += 2 * 4 * m.sequences * s.heads * std::min<int64_t>(128, m.length) * m.length + 4 * e * N * X;
  f.workspace_bytes = std::max(feed_forward, attention);
}

void head_facts(BlockFacts& f, const ModelShape& s, const MicroBatchShape& m, int64_t e) {
  const int64_t N = m.tokens(), C = s.hidden;
  const auto rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(N) * m.target_fraction + 0.999));
  const int64_t chunk = std::min(rows, VocabularyLoss::chunk_rows(s.vocab));
  const double transform = s.arch == Arch::bert ? static_cast<double>(C * C) : 0;
  f.forward_flop = 2.0 * static_cast<double>(rows) * (static_cast<double>(s.vocab * C) + transform);
  f.backward_flop = 2 * f.forward_flop;
  f.forward_touched_bytes = e * rows * (2 * s.vocab + 6 * C);
  f.backward_touched_bytes = e * rows * (2 * s.vocab + 8 * C);
  f.output_bytes = 0;
  const int64_t around = s.arch == Arch::bert ? 7 : 3;
  f.workspace_bytes = e * chunk * s.vocab + (e < 4 ? 4 * chunk * s.vocab : 0) + e * rows * around * C + 4 * chunk;
}

}  // namespace

std::vector<BlockFacts> block_facts(const ModelShape& shape, const MicroBatchShape& micro, Precision precision,
                                    bool attention_is_tiled) {
  const int64_t e = precision == Precision::fp32 ? 4 : 2, N = micro.tokens(), C = shape.hidden;
  std::vector<BlockFacts> facts;
  for (const BlockSpec& spec : list_blocks(shape)) {
    BlockFacts f;
    f.name = spec.name;
    f.kind = spec.kind;
    f.parameters = parameter_elements(spec);
    f.compute_copy_bytes = precision == Precision::fp32 ? 0 : 2 * spec.flat_size;
    switch (spec.kind) {
      case BlockKind::embedding:
        f.output_bytes = e * N * C;
        f.forward_touched_bytes = e * N * 4 * C;
        f.backward_touched_bytes = e * N * 6 * C;
        f.saved_bytes = shape.arch == Arch::bert ? e * N * C : 0;
        f.workspace_bytes = e * N * C * (shape.arch == Arch::bert ? 3 : 1);
        f.aside_bytes = shape.tied ? 4 * std::min(N, shape.vocab) * C : 0;
        break;
      case BlockKind::layer: layer_facts(f, spec, shape, micro, e, attention_is_tiled); break;
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

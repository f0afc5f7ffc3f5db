#include "planner/sample.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/names.h"
#include "data/batch.h"
#include "engine/block_state.h"
#include "engine/state_pieces.h"
#include "families/blocks.h"
#include "families/family.h"
#include "layout/cuts.h"
#include "model/absent_ranks.h"
#include "model/local_rows.h"
#include "model/tensor_ops.h"
#include "planner/typical_time.h"

namespace megalith {
namespace {

// Operations of one call. More would not change the result: matrices of this size are as fast as larger ones.
constexpr double kEnoughFlop = 60e9;
// Products with fewer rows or columns are slower, so a sample keeps at least this many if the model has them.
constexpr int64_t kRows = 512, kColumns = 1024, kWords = 8192;
// A sample leaves out experts beyond kExperts if all of them would take more memory than kMostExpertBytes.
constexpr int64_t kExperts = 64;
constexpr double kMostExpertBytes = 256e6;

// Makes every layer have experts, because in a model with experts a layer that has them is measured.
ModelShape with_experts_everywhere(ModelShape shape) {
  shape.experts.dense_first = 0;
  shape.experts.every = 1;
  return shape;
}

MicroBatchShape whole_sequences(MicroBatchShape micro) {  // a sample drops nothing
  micro.kept = 0;
  return micro;
}

struct LayerAndHead {
  BlockFacts layer, head;
};
LayerAndHead facts_of(const Workload& work) {
  ModelShape one = with_experts_everywhere(work.shape);
  one.layers = 1;
  const auto facts = block_facts(one, whole_sequences(work.micro), work.precision, Packing::fp32, Mesh(work.layout));
  return {facts[1], facts.back()};
}

double flop_of(const BlockFacts& facts) { return facts.forward.flop + facts.backward.flop; }

// Removes sequences that kRows rows do not need.
void take_fewer_sequences(Workload& work) {
  const int64_t enough = (kRows + work.micro.length - 1) / work.micro.length;
  work.micro.sequences = std::min(work.micro.sequences, enough);
}

// Halves the width, with heads of the same size. Returns false if the model is already narrow, or if ranks could not divide
// its heads.
bool halve_width(ModelShape& s, const Layout& layout) {
  if (s.hidden < 2 * kColumns || s.heads < 2) return false;
  const int64_t group = s.heads / s.kv_heads, kv_heads = std::max<int64_t>(1, s.kv_heads / 2);
  const int64_t heads = s.kv_heads > 1 ? kv_heads * group : s.heads / 2, head_dim = s.head_dim();
  if (const int64_t ranks = int64_t{layout.tensor} * layout.context; ranks > 1 && kv_heads % ranks != 0) return false;
  s.hidden = s.head_size > 0 ? s.hidden * heads / s.heads : heads * head_dim;
  s.ffn = std::max<int64_t>(1, s.ffn * heads / s.heads);
  s.experts.ffn = std::max<int64_t>(std::min<int64_t>(1, s.experts.ffn), s.experts.ffn * heads / s.heads);
  s.experts.shared = s.experts.shared * heads / s.heads;
  s.kv_heads = kv_heads;
  s.heads = heads;
  return true;
}

bool halve(int64_t& size, int64_t least) {
  if (size < 2 * least) return false;
  size /= 2;
  return true;
}

// Limits the sizes that depend on the length and the number of sequences.
void fit_to_micro(Workload& work) {
  Experts& x = work.shape.experts;
  work.shape.context = std::min(work.shape.context, std::max(work.micro.length, kRows));
  x.group = std::min(x.group, work.micro.length);
  x.across = std::min(x.across, work.micro.sequences);
}

// Makes the workload smaller until a call has at most kEnoughFlop. Length and width shrink together, so that attention keeps
// its part of the work.
Workload sample_of_layer(Workload work) {
  Experts& x = work.shape.experts;
  const auto large = [&] { return flop_of(facts_of(work).layer) > kEnoughFlop; };
  const auto heavy = [&] {
    return 12 * static_cast<double>(x.count) * static_cast<double>(x.ffn) * static_cast<double>(work.shape.hidden) > kMostExpertBytes;
  };
  if (!large() && !heavy()) return work;
  take_fewer_sequences(work);
  work.shape.vocab = std::min(work.shape.vocab, kWords);
  while (large()) {
    const bool narrower = halve_width(work.shape, work.layout);
    const bool shorter = halve(work.micro.length, kRows);
    if (narrower || shorter) continue;
    if (halve(work.shape.ffn, 4 * kColumns) || halve(x.ffn, kColumns) || halve(x.shared, kColumns)) continue;
    if (!halve(work.micro.length, 1)) break;
  }
  while (heavy() && x.count / 2 >= std::max(x.top_k, kExperts)) x.count /= 2;
  fit_to_micro(work);
  return work;
}

Workload sample_of_head(Workload work) {
  const auto large = [&] { return flop_of(facts_of(work).head) > kEnoughFlop; };
  if (!large()) return work;
  take_fewer_sequences(work);
  while (large())
    if (!halve(work.shape.vocab, kWords) && !halve_width(work.shape, work.layout) && !halve(work.micro.length, 1)) break;
  fit_to_micro(work);
  return work;
}

// A rank's part of one layer and of the head of a model, with its own weights, ready to run. The other ranks are absent,
// because exchanges are measured separately.
class Sample {
 public:
  explicit Sample(const Workload& work)
      : work_(work), tensor_(work.layout.tensor, 0), context_(work.layout.context, 0), expert_(work.layout.expert, 0) {
    exchanges_.mesh = Mesh(work.layout);
    if (work.layout.tensor > 1) exchanges_.tensor = &tensor_;
    if (work.layout.context > 1) exchanges_.context = &context_;
    if (work.layout.expert > 1) exchanges_.expert = &expert_;
    ModelShape one = with_experts_everywhere(work.shape);
    one.layers = 1;
    blocks_ = make_blocks(one, exchanges_);
    const auto compute = at::TensorOptions().dtype(compute_type(work.precision));
    const int64_t N = work.micro.tokens();
    pass_.sequences = work.micro.sequences;
    pass_.length = work.micro.length;
    pass_.visibility = visibility_of(*work.shape.family, row_of(work.objective).has_prefix);
    pass_.prefix_B.assign(static_cast<size_t>(work.micro.sequences), work.micro.length / 2);
    pass_.dropout = work.shape.dropout.any();
    const auto targets = static_cast<int64_t>(static_cast<double>(N) * work.micro.target_fraction);
    pass_.ids_N = tensor::zeros({N}, at::kLong);
    pass_.targets_N = tensor::full({N}, kNoTarget, at::kLong);
    pass_.targets_N.narrow(0, 0, std::max<int64_t>(1, targets)).zero_();
    if (exchanges_.mesh.divides_rows()) pass_ = local_pass(std::move(pass_), exchanges_.mesh);
    x_SC_ = tensor::ones({pass_.rows(), work.shape.hidden}, compute);
    x_SC_.select(1, 0).fill_(2);  // a row of equal values would have no variance to normalise
    if (one.experts.any()) x_SC_.normal_();  // so that every expert gets tokens
    flushed_ = tensor::ones({int64_t{16} << 20});
  }

  double layer_seconds() {
    Block& layer = *blocks_[1];
    bind(layer);
    return typical_seconds(
        "a layer of this model",
        [&] {
          Tape tape;
          at::Tensor y_SC = layer.forward(x_SC_, pass_, &tape);
          layer.backward(y_SC, pass_, tape);
        },
        0.3, [&] { flush(); });
  }

  double head_seconds() {
    auto& head = static_cast<HeadBlock&>(*blocks_.back());
    bind(head);
    at::Tensor values, gradients;
    if (work_.shape.ties_table()) {
      const int64_t rows = cut_point(work_.shape.vocab, work_.layout.tensor, 1);  // rows of the table on this rank
      values = tensor::full({rows, work_.shape.hidden}, 0.01, x_SC_.options());
      gradients = tensor::zeros({rows, work_.shape.hidden}, at::kFloat);
      head.tie({values, gradients});
    }
    at::Tensor gx_SC;
    const auto run = [&] {
      if (work_.shape.head == HeadKind::vocabulary) head.loss_and_gradient(x_SC_, pass_, gx_SC);
      else head.represent_backward(head.represent(x_SC_, pass_), x_SC_, pass_);
    };
    return typical_seconds("the head of this model", run, 0.3, [&] { flush(); });
  }

 private:
  void bind(Block& block) {
    values_ = tensor::full({block.spec().flat_size}, 0.01, x_SC_.options());
    if (work_.shape.experts.any()) values_.normal_(0, 0.02);
    gradients_ = tensor::zeros({block.spec().flat_size}, at::kFloat);
    block.bind(values_, gradients_);
  }
  // In a step, the caches are full of other blocks' data when a block begins.
  void flush() { flushed_.add_(1); }

  Workload work_;
  AbsentRanks tensor_, context_, expert_;
  Exchanges exchanges_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Pass pass_;
  at::Tensor x_SC_, values_, gradients_, flushed_;
};

}  // namespace

MeasuredBlock measured_layer(const Workload& work) {
  const Workload sample = sample_of_layer(work);
  return {sample, facts_of(sample).layer, facts_of(work).layer};
}

MeasuredBlock measured_head(const Workload& work) {
  const Workload sample = sample_of_head(work);
  return {sample, facts_of(sample).head, facts_of(work).head};
}

std::string describe(const Workload& w) {
  const Experts& x = w.shape.experts;
  const std::string experts = x.any() ? fmt::format(" experts {} of {}x{}+{} by {} capacity {}", x.top_k, x.count, x.ffn,
                                                    x.shared, name_of(x.router), x.capacity)
                                      : "";
  const Layout& l = w.layout;
  std::string part;  // which part of the block a rank has
  if (l.tensor > 1) part += fmt::format(" tensor {}", l.tensor);
  if (l.context > 1) part += fmt::format(" context {} {}", l.context, name_of(l.context_form));
  if (l.expert > 1) part += fmt::format(" expert {}", l.expert);
  return fmt::format("{} {}x{}{} heads {}/{} vocab {}{} batch {}x{} targets {:.3f} {} {} dropout {}/{}{}", w.shape.family->name,
                     w.shape.hidden, w.shape.ffn, experts, w.shape.heads, w.shape.kv_heads, w.shape.vocab,
                     w.shape.tied ? " tied" : "", w.micro.sequences, w.micro.length, w.micro.target_fraction,
                     name_of(w.precision), name_of(w.objective), w.shape.dropout.residual, w.shape.dropout.attention, part);
}

double layer_seconds(const Workload& sample) { return Sample(sample).layer_seconds(); }
double head_seconds(const Workload& sample) { return Sample(sample).head_seconds(); }

}  // namespace megalith

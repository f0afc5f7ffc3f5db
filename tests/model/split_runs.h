// Runs models split over ranks that are threads, and the same model on one rank. Puts losses and gradients together from the
// parts that the ranks hold.
#pragma once

#include <map>

#include "config/presets.h"
#include "families/blocks.h"
#include "model/local_rows.h"
#include "model/support.h"
#include "model/tensor_ops.h"
#include "model/thread_ranks.h"

namespace megalith::testing_support {

constexpr Dropout kDrop{0.1, 0.2, 0.3};
constexpr int64_t kSequences = 3, kLength = 11, kMicros = 2;  // not divisible by two, three or four ranks

struct Model {
  std::string name;
  const Family* family = &gpt2_family;
  int64_t heads = 12, kv_heads = 0;  // 0: the same number as heads
  bool tied = true;
  Dropout dropout = {};
  bool prefix = false;
  bool documents = false;
  bool some_targets = false;
  int64_t kept = 0;  // tokens that layer 1 keeps; 0: all
  bool biases = false;  // llama: on the attention's projections
  Experts experts = {};  // llama
};

inline ModelShape shape_of(const Model& m) {
  ModelShape shape = default_shape(*m.family);
  shape.layers = 2;
  shape.heads = m.heads;
  shape.kv_heads = m.kv_heads;
  shape.hidden = (m.family == &llama_family ? 4 : 2) * m.heads;
  shape.ffn = 36;
  shape.vocab = 37;
  shape.context = 16;
  shape.tied = m.tied;
  shape.dropout = m.dropout;
  shape.qkv_bias = shape.output_bias = m.biases;
  shape.experts = m.experts;
  fill_defaults(shape);
  return shape;
}

inline Pass whole_pass(const Model& m, int64_t vocab, int64_t micro) {
  constexpr int64_t kTokens = kSequences * kLength;
  Pass pass;
  pass.sequences = kSequences;
  pass.length = kLength;
  pass.ids_N = ids(kTokens, vocab, 10 + static_cast<uint64_t>(micro));
  pass.targets_N = ids(kTokens, vocab, 20 + static_cast<uint64_t>(micro));
  if (m.some_targets)
    for (int64_t n = 0; n < kTokens; n++)
      if (n % 5 > 1 || n < 9) pass.targets_N.mutable_data_ptr<int64_t>()[n] = kNoTarget;
  pass.visibility = m.family == &bert_family ? Visibility::all : m.prefix ? Visibility::prefix : Visibility::causal;
  if (m.prefix) pass.prefix_B = {3 + micro % 2, 8, 1};
  if (m.documents)
    pass.document_begin_N = tensor::from_values(std::vector<int64_t>{0, 0, 2, 2, 2, 2, 2, 7, 8, 8, 8, 0, 0, 0, 0, 0, 5,
                                                            5, 5, 5, 5, 5, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10});
  if (m.kept > 0) {
    pass.dropping = {m.kept, {1}, std::vector<uint8_t>(kTokens, 0)};
    pass.dropping.always[4] = pass.dropping.always[13] = 1;
  }
  pass.dropout = m.dropout.any();
  pass.seed = 17;
  pass.step = 4;
  pass.first_sequence = micro * kSequences;
  pass.gradient_scale = 1.0 / 16;
  pass.explores = true;
  pass.balance_scale = 1.0 / 3;
  return pass;
}

// Values larger than the usual initial ones, so that every nonlinearity matters. They depend only on the whole parameter.
inline at::Tensor whole_values(const ParameterSpec& p, uint64_t number) {
  return normal({p.whole_size()}, 100 + number).mul_(p.whole_shape.size() == 2 ? 0.3 : 0.2).add_(p.initial);
}

// The results of the model, put together from all ranks.
struct Result {
  double loss = 0;
  int64_t targets = 0;
  std::map<std::string, std::vector<double>> gradients;
  std::map<std::string, std::vector<int>> holders;  // number of ranks that hold each element
};

struct RankResult {
  LossSums sums;
  std::vector<BlockSpec> specs;
  std::vector<at::Tensor> gradients;
  ExchangeFacts tensor, context;  // sent in all micro-batches
};

// Returns what a rank has sent along an axis so far.
inline ExchangeFacts sent(const Exchange* exchange) {
  const auto* it = static_cast<const ThreadExchange*>(exchange);
  return it ? ExchangeFacts{it->calls, it->bytes} : ExchangeFacts{};
}

// Each rank of the expert axis has its own micro-batches.
inline RankResult run_rank(const Model& m, const Exchanges& exchanges, at::ScalarType type, int64_t micros = kMicros) {
  const ModelShape shape = shape_of(m);
  auto blocks = make_blocks(shape, exchanges);
  const auto gradient_type = c10::promoteTypes(type, at::kFloat);
  RankResult result;
  std::vector<at::Tensor> values;
  uint64_t number = 0;
  for (auto& block : blocks) {
    const BlockSpec& spec = block->spec();
    at::Tensor flat = tensor::zeros({spec.flat_size}, at::kDouble);
    for (const ParameterSpec& p : spec.parameters) {
      const at::Tensor whole = whole_values(p, number++);
      for_each_contiguous(p, 0, p.size(), [&](int64_t from, int64_t to, int64_t count) {
        flat.narrow(0, p.offset + to, count).copy_(whole.narrow(0, from, count));
      });
    }
    values.push_back(flat.to(type));
    result.gradients.push_back(tensor::zeros({spec.flat_size}, gradient_type));
    result.specs.push_back(spec);
    block->bind(values.back(), result.gradients.back());
  }
  auto& embedding = static_cast<EmbeddingBlock&>(*blocks.front());
  auto& head = static_cast<HeadBlock&>(*blocks.back());
  if (shape.tied) head.tie(embedding.table());
  struct {
    at::Tensor x;
    Pass pass;
    LossSums sums;
  } last;
  for (int64_t i = 0; i < micros; i++) {
    const int64_t micro = exchanges.mesh.coordinate(Axis::expert) * micros + i;
    const Pass pass = local_pass(whole_pass(m, shape.vocab, micro), exchanges.mesh);
    std::vector<Tape> tapes(blocks.size());
    at::Tensor x, g;
    for (size_t b = 0; b + 1 < blocks.size(); b++) {
      x = blocks[b]->forward(x, pass, &tapes[b]);
      EXPECT_EQ(x.size(0), pass.rows());
    }
    const LossSums sums = head.loss_and_gradient(x, pass, g);
    for (size_t b = blocks.size() - 1; b-- > 0;) {
      g = blocks[b]->backward(g, pass, tapes[b]);
      EXPECT_TRUE(tapes[b].empty());
    }
    result.tensor = sent(exchanges.tensor);
    result.context = sent(exchanges.context);
    result.sums.loss += sums.loss;
    result.sums.targets += sums.targets;
    last = {x, pass, sums};
  }
  // Computes only the loss, with the loss of every position.
  at::Tensor each;
  const double alone = head.loss(last.x, last.pass, &each).loss;
  EXPECT_NEAR(alone, last.sums.loss, 1e-6 * std::abs(alone));
  EXPECT_EQ(each.numel(), last.pass.tokens());
  for (int64_t n = 0; n < each.numel(); n++)
    EXPECT_EQ(doubles(each)[static_cast<size_t>(n)] == 0, last.pass.targets_N[n].item<int64_t>() == kNoTarget);
  embedding.fold();
  return result;
}

inline Result run(const Model& m, int64_t tensor, int64_t context, ContextForm form, at::ScalarType type, int64_t expert = 1,
           int64_t micros = kMicros) {
  std::vector<RankResult> by_rank(static_cast<size_t>(tensor * context * expert));
  run_ranks(tensor, context, form, [&](const Exchanges& exchanges) {
    const Mesh& s = exchanges.mesh;
    const int64_t place = s.rank();
    by_rank[static_cast<size_t>(place)] = run_rank(m, exchanges, type, micros);
  }, expert);
  Result result;
  for (int64_t c = 0; c < context * expert; c++)
    for (int64_t t = 0; t < tensor; t++) {
      const RankResult& rank = by_rank[static_cast<size_t>(c * tensor + t)];
      EXPECT_EQ(rank.sums.loss, by_rank[static_cast<size_t>(c * tensor)].sums.loss) << "tensor ranks have one loss";
      if (t == 0) {
        result.loss += rank.sums.loss;
        result.targets += rank.sums.targets;
      }
      for (size_t b = 0; b < rank.specs.size(); b++) {
        const std::vector<double> flat = doubles(rank.gradients[b]);
        for (const ParameterSpec& p : rank.specs[b].parameters) {
          auto& whole = result.gradients[p.name];
          auto& holders = result.holders[p.name];
          whole.resize(static_cast<size_t>(p.whole_size()));
          holders.resize(whole.size());
          for_each_contiguous(p, 0, p.size(), [&](int64_t to, int64_t from, int64_t count) {
            for (int64_t i = 0; i < count; i++) {
              whole[static_cast<size_t>(to + i)] += flat[static_cast<size_t>(p.offset + from + i)];
              holders[static_cast<size_t>(to + i)]++;
            }
          });
          if (c + 1 < context * expert || t + 1 < tensor) continue;
          // (The last rank has the last experts.)
          const int64_t copies = context * (p.of_expert ? 1 : expert);
          if (!p.of_expert || p.size() > 0) {
            for (int n : holders) EXPECT_EQ(n, p.is_cut() ? copies : copies * tensor) << p.name;
          } else {
            for (int n : holders) EXPECT_GE(n, context) << p.name;
          }
        }
      }
    }
  return result;
}

inline double norm(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

// Largest difference of a gradient, in units of max(its norm, 1e-6 of all gradients' norm).
inline void expect_same(const Result& got, const Result& wanted, double loss_tolerance, double gradient_tolerance) {
  EXPECT_EQ(got.targets, wanted.targets);
  EXPECT_NEAR(got.loss, wanted.loss, loss_tolerance * std::abs(wanted.loss));
  double squares = 0, worst = 0;
  for (const auto& [name, g] : wanted.gradients) squares += norm(g) * norm(g);
  ASSERT_EQ(got.gradients.size(), wanted.gradients.size());
  for (const auto& [name, g] : wanted.gradients) {
    ASSERT_TRUE(got.gradients.contains(name)) << name;
    std::vector<double> difference = got.gradients.at(name);
    ASSERT_EQ(difference.size(), g.size()) << name;
    for (size_t i = 0; i < g.size(); i++) difference[i] -= g[i];
    // The bias of keys shifts all scores of a query by the same amount. So its gradient is only rounding noise.
    const double floor = name.ends_with("key.bias") ? 1e-2 : 1e-6;
    const double error = norm(difference) / std::max(norm(g), floor * std::sqrt(squares));
    EXPECT_LE(error, gradient_tolerance) << name;
    worst = std::max(worst, error);
  }
  std::printf("    loss %.1e, worst gradient %.1e\n", std::abs(got.loss / wanted.loss - 1), worst);
}

struct SplitOver {
  int64_t tensor = 1, context = 1;
  ContextForm form = ContextForm::ring;
};

constexpr ContextForm kRing = ContextForm::ring, kUlysses = ContextForm::ulysses;

inline Experts experts_of(Router router, int64_t count = 4, int64_t top_k = 2) {
  Experts x;
  x.count = count;
  x.top_k = top_k;
  x.router = router;
  x.aux_loss = 0.5;
  return x;
}

inline Model sparse(const std::string& name, const Experts& experts) {
  return {.name = name, .family = &llama_family, .heads = 8, .kv_heads = 4, .experts = experts};
}

}  // namespace megalith::testing_support

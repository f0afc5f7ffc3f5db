// Models split over ranks against the same model on one: loss and every gradient, put together from the parts that the
// ranks hold. In double, where only the order of sums differs, and in float32 within the contract for layouts.
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <map>

#include "base/error.h"
#include "config/presets.h"
#include "model/block.h"
#include "model/facts.h"
#include "model/share.h"
#include "model/support.h"
#include "model/thread_ranks.h"

namespace megalith {
namespace {
using namespace testing_support;

constexpr Dropout kDrop{0.1, 0.2, 0.3};
constexpr int64_t kSequences = 3, kLength = 11, kMicros = 2;  // nothing that two, three or four ranks divide

struct Model {
  std::string name;
  Arch arch = Arch::gpt2;
  int64_t heads = 12, kv_heads = 0;  // 0: as many as heads
  bool tied = true;
  Dropout dropout = {};
  bool prefix = false;
  bool documents = false;
  bool some_targets = false;
  int64_t kept = 0;  // tokens that layer 1 keeps; 0: all
  bool biases = false;  // llama: on the attention's projections
  Experts experts = {};  // llama
};

ModelShape shape_of(const Model& m) {
  ModelShape shape = default_shape(m.arch);
  shape.layers = 2;
  shape.heads = m.heads;
  shape.kv_heads = m.kv_heads;
  shape.hidden = (m.arch == Arch::llama ? 4 : 2) * m.heads;
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

Pass whole_pass(const Model& m, int64_t vocab, int64_t micro) {
  constexpr int64_t kTokens = kSequences * kLength;
  Pass pass;
  pass.sequences = kSequences;
  pass.length = kLength;
  pass.ids_N = ids(kTokens, vocab, 10 + static_cast<uint64_t>(micro));
  pass.targets_N = ids(kTokens, vocab, 20 + static_cast<uint64_t>(micro));
  if (m.some_targets)
    for (int64_t n = 0; n < kTokens; n++)
      if (n % 5 > 1 || n < 9) pass.targets_N.mutable_data_ptr<int64_t>()[n] = kNoTarget;
  pass.visibility = m.arch == Arch::bert ? Visibility::all : m.prefix ? Visibility::prefix : Visibility::causal;
  if (m.prefix) pass.prefix_B = {3 + micro % 2, 8, 1};
  if (m.documents)
    pass.document_begin_N = at::tensor(std::vector<int64_t>{0, 0, 2, 2, 2, 2, 2, 7, 8, 8, 8, 0, 0, 0, 0, 0, 5,
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

// Values far from their usual small ones, so that every nonlinearity bends: a function of the whole parameter alone.
at::Tensor whole_values(const ParameterSpec& p, uint64_t number) {
  return normal({p.whole_size()}, 100 + number).mul_(p.whole_shape.size() == 2 ? 0.3 : 0.2).add_(p.initial);
}

// What the model computes, put together from whatever ranks computed it.
struct Result {
  double loss = 0;
  int64_t targets = 0;
  std::map<std::string, std::vector<double>> gradients;
  std::map<std::string, std::vector<int>> holders;  // of each element
};

struct RankResult {
  LossSums sums;
  std::vector<BlockSpec> specs;
  std::vector<at::Tensor> gradients;
  ExchangeFacts tensor, context;  // what it sent, all micro-batches
};

// Ranks of the expert axis have micro-batches of their own.
RankResult run_rank(const Model& m, const Ranks& ranks, at::ScalarType type, int64_t micros = kMicros) {
  const ModelShape shape = shape_of(m);
  auto blocks = make_blocks(shape, ranks);
  const auto gradient_type = c10::promoteTypes(type, at::kFloat);
  RankResult result;
  std::vector<at::Tensor> values;
  uint64_t number = 0;
  for (auto& block : blocks) {
    const BlockSpec& spec = block->spec();
    at::Tensor flat = at::zeros({spec.flat_size}, at::kDouble);
    for (const ParameterSpec& p : spec.parameters) {
      const at::Tensor whole = whole_values(p, number++);
      for_each_run(p, 0, p.size(), [&](int64_t from, int64_t to, int64_t count) {
        flat.narrow(0, p.offset + to, count).copy_(whole.narrow(0, from, count));
      });
    }
    values.push_back(flat.to(type));
    result.gradients.push_back(at::zeros({spec.flat_size}, gradient_type));
    result.specs.push_back(spec);
    block->bind(values.back(), result.gradients.back());
  }
  auto& embedding = static_cast<EmbeddingBlock&>(*blocks.front());
  auto& head = static_cast<HeadBlock&>(*blocks.back());
  if (shape.tied) head.tie(embedding.table());
  auto sent = [](const Exchange* exchange) {
    const auto* it = static_cast<const ThreadExchange*>(exchange);
    return it ? ExchangeFacts{it->calls, it->bytes} : ExchangeFacts{};
  };
  struct {
    at::Tensor x;
    Pass pass;
    LossSums sums;
  } last;
  for (int64_t i = 0; i < micros; i++) {
    const int64_t micro = ranks.split.expert_rank * micros + i;
    const Pass pass = share_of(whole_pass(m, shape.vocab, micro), ranks.split);
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
    result.tensor = sent(ranks.tensor);
    result.context = sent(ranks.context);
    result.sums.loss += sums.loss;
    result.sums.targets += sums.targets;
    last = {x, pass, sums};
  }
  // The loss alone, without and with every position's.
  at::Tensor each;
  const double alone = head.loss(last.x, last.pass, &each).loss;
  EXPECT_NEAR(alone, last.sums.loss, 1e-6 * std::abs(alone));
  EXPECT_EQ(each.numel(), last.pass.tokens());
  for (int64_t n = 0; n < each.numel(); n++)
    EXPECT_EQ(doubles(each)[static_cast<size_t>(n)] == 0, last.pass.targets_N[n].item<int64_t>() == kNoTarget);
  embedding.fold();
  return result;
}

Result run(const Model& m, int64_t tensor, int64_t context, ContextForm form, at::ScalarType type, int64_t expert = 1,
           int64_t micros = kMicros) {
  std::vector<RankResult> by_rank(static_cast<size_t>(tensor * context * expert));
  run_ranks(tensor, context, form, [&](const Ranks& ranks) {
    const Split& s = ranks.split;
    const int64_t place = (s.expert_rank * context + s.context_rank) * tensor + s.tensor_rank;
    by_rank[static_cast<size_t>(place)] = run_rank(m, ranks, type, micros);
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
          for_each_run(p, 0, p.size(), [&](int64_t to, int64_t from, int64_t count) {
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

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

// Largest difference of a gradient, in units of max(its norm, 1e-6 of all gradients' norm).
void expect_same(const Result& got, const Result& wanted, double loss_tolerance, double gradient_tolerance) {
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
    // A key's bias shifts all scores of a query alike: its gradient is rounding noise in any program.
    const double floor = name.ends_with("key.bias") ? 1e-2 : 1e-6;
    const double error = norm(difference) / std::max(norm(g), floor * std::sqrt(squares));
    EXPECT_LE(error, gradient_tolerance) << name;
    worst = std::max(worst, error);
  }
  std::printf("    loss %.1e, worst gradient %.1e\n", std::abs(got.loss / wanted.loss - 1), worst);
}

struct Layout {
  int64_t tensor = 1, context = 1;
  ContextForm form = ContextForm::ring;
};
struct Case {
  Model model;
  std::vector<Layout> layouts;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.model.name; }

class SplitModels : public testing::TestWithParam<Case> {};

TEST_P(SplitModels, GiveTheLossAndGradientsOfTheWholeOne) {
  const auto& [model, layouts] = GetParam();
  const Result exact = run(model, 1, 1, ContextForm::ring, at::kDouble), whole = run(model, 1, 1, ContextForm::ring, at::kFloat);
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(testing::Message() << "tensor " << layout.tensor << ", context " << layout.context
                                    << (layout.form == ContextForm::ulysses ? ", ulysses" : ""));
    std::printf("  %s: tensor %d, context %d%s\n", model.name.c_str(), static_cast<int>(layout.tensor),
                static_cast<int>(layout.context), layout.form == ContextForm::ulysses ? ", ulysses" : "");
    expect_same(run(model, layout.tensor, layout.context, layout.form, at::kDouble), exact, 1e-13, 1e-9);
    expect_same(run(model, layout.tensor, layout.context, layout.form, at::kFloat), whole, 1e-6, 1e-4);
  }
}

constexpr ContextForm kRing = ContextForm::ring, kUlysses = ContextForm::ulysses;
const std::vector<Layout> kTensor{{2}, {3}, {4}};
const std::vector<Layout> kContext{{1, 2}, {1, 4}, {1, 2, kUlysses}, {1, 4, kUlysses}};
const std::vector<Layout> kBoth{{2, 2}, {3, 2, kUlysses}, {2, 3}};
const std::vector<Layout> kAll{{2},              {3},              {4},    {1, 2},           {1, 4},
                               {1, 2, kUlysses}, {1, 4, kUlysses}, {2, 2}, {3, 2, kUlysses}, {2, 3}};

INSTANTIATE_TEST_SUITE_P(
    Architectures, SplitModels,
    testing::Values(
        Case{{.name = "Gpt2"}, kAll}, Case{{.name = "Gpt2Untied", .tied = false}, kTensor},
        Case{{.name = "Gpt2Dropout", .dropout = kDrop}, kAll}, Case{{.name = "Gpt2Prefix", .prefix = true}, kContext},
        Case{{.name = "Gpt2DocumentsSomeTargets", .documents = true, .some_targets = true}, kAll},
        Case{{.name = "Gpt2DroppingTokens", .dropout = kDrop, .documents = true, .kept = 6}, kAll},
        Case{{.name = "Llama", .arch = Arch::llama, .tied = false}, kAll},
        Case{{.name = "LlamaGrouped", .arch = Arch::llama, .heads = 4, .kv_heads = 2}, {{2}, {1, 2}, {1, 4}, {1, 2, kUlysses}, {2, 2}}},
        Case{{.name = "LlamaGroupedThree", .arch = Arch::llama, .heads = 6, .kv_heads = 3, .tied = false, .dropout = kDrop, .biases = true},
             {{3}, {1, 3, kUlysses}, {3, 2}}},
        Case{{.name = "LlamaGroupedDropping", .arch = Arch::llama, .heads = 8, .kv_heads = 4, .dropout = kDrop, .prefix = true,
              .some_targets = true, .kept = 5},
             {{4}, {1, 4}, {1, 2, kUlysses}, {2, 2}, {2, 2, kUlysses}}},
        Case{{.name = "Bert", .arch = Arch::bert, .some_targets = true}, kAll},
        Case{{.name = "BertUntiedDropout", .arch = Arch::bert, .tied = false, .dropout = kDrop, .some_targets = true}, kBoth},
        Case{{.name = "BertDocumentsDropping", .arch = Arch::bert, .dropout = kDrop, .documents = true, .some_targets = true, .kept = 4}, kAll}),
    [](const auto& test) { return test.param.model.name; });

Experts experts_of(Router router, int64_t count = 4, int64_t top_k = 2) {
  Experts x;
  x.count = count;
  x.top_k = top_k;
  x.router = router;
  x.aux_loss = 0.5;
  return x;
}

// Experts spread over ranks with sequences of their own, against one rank that takes all of them.
void expect_spread(const Model& model, int64_t expert, int64_t tensor = 1, int64_t context = 1,
                   ContextForm form = ContextForm::ring) {
  SCOPED_TRACE(testing::Message() << model.name << ", expert " << expert << ", tensor " << tensor << ", context " << context);
  std::printf("  %s: expert %d, tensor %d, context %d\n", model.name.c_str(), static_cast<int>(expert),
              static_cast<int>(tensor), static_cast<int>(context));
  for (at::ScalarType type : {at::kDouble, at::kFloat}) {
    const bool exact = type == at::kDouble;
    const Result whole = run(model, 1, 1, form, type, 1, expert * kMicros);
    expect_same(run(model, tensor, context, form, type, expert), whole, exact ? 1e-13 : 1e-6, exact ? 1e-9 : 1e-4);
  }
}

Model sparse(const std::string& name, const Experts& experts) {
  return {.name = name, .arch = Arch::llama, .heads = 8, .kv_heads = 4, .experts = experts};
}

TEST(SpreadExperts, GiveTheLossAndGradientsOfOneRank) {
  expect_spread(sparse("Softmax", experts_of(Router::softmax)), 2);
  expect_spread(sparse("Softmax", experts_of(Router::softmax)), 4);
  expect_spread(sparse("ThreeRanks", experts_of(Router::softmax, 6, 3)), 3);
  expect_spread(sparse("Noisy", experts_of(Router::noisy)), 2);
  expect_spread(sparse("Gshard", experts_of(Router::gshard)), 2);
  Experts crowded = experts_of(Router::softmax, 8);
  crowded.capacity = 0.75;
  crowded.group = 4;
  expect_spread(sparse("Capacity", crowded), 4);
  Experts jittered = experts_of(Router::switch_, 4, 1);
  jittered.jitter = 0.1;
  expect_spread(sparse("Switch", jittered), 2);
  Experts biased = experts_of(Router::sigmoid);
  biased.shared = 8;
  biased.ffn = 12;
  expect_spread(sparse("SigmoidShared", biased), 2);
  Experts chooses = experts_of(Router::expert_choice);
  chooses.across = kSequences;
  expect_spread(sparse("ExpertChoice", chooses), 2);
  Model some = sparse("EverySecondDropping", experts_of(Router::softmax));
  some.experts.every = 2;
  some.kept = 6;
  expect_spread(some, 2);
}

TEST(SpreadExperts, ShareTheirInsideAndTheirSequencesToo) {
  Experts crowded = experts_of(Router::softmax);
  crowded.capacity = 0.75;
  crowded.group = 4;
  Experts biased = experts_of(Router::sigmoid);
  biased.shared = 8;
  biased.ffn = 12;
  Experts jittered = experts_of(Router::switch_, 4, 1);
  jittered.jitter = 0.1;
  Experts chooses = experts_of(Router::expert_choice);
  chooses.across = kSequences;
  Model dropping = sparse("Dropping", biased);
  dropping.kept = 6;
  const std::vector<Model> models{sparse("Noisy", experts_of(Router::noisy)), sparse("Gshard", experts_of(Router::gshard)),
                                  sparse("Capacity", crowded),                sparse("SigmoidShared", biased),
                                  sparse("Switch", jittered),                 sparse("ExpertChoice", chooses), dropping};
  for (const Model& model : models) {
    expect_spread(model, 1, 2);
    expect_spread(model, 1, 1, 3);
    expect_spread(model, 1, 2, 2);
    expect_spread(model, 2, 2, 2, ContextForm::ulysses);
  }
}

TEST(SpreadExperts, ComputeInSixteenBitsToo) {
  const Model model = sparse("", experts_of(Router::softmax, 2, 2));  // nobody changes experts by rounding
  expect_same(run(model, 1, 1, kRing, at::kBFloat16, 2), run(model, 1, 1, kRing, at::kBFloat16, 1, 2 * kMicros), 2e-3, 0.1);
}

TEST(SpreadExperts, RunTwiceGiveTheSameBits) {
  const Model model = sparse("", experts_of(Router::noisy));
  const Result one = run(model, 1, 1, kRing, at::kFloat, 4), two = run(model, 1, 1, kRing, at::kFloat, 4);
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.gradients, two.gradients);
}

TEST(SpreadExperts, ArePartsOfTheirOwnThatBeginPages) {
  const ModelShape shape = shape_of(sparse("", experts_of(Router::softmax)));
  std::map<std::string, int> holders;
  for (int64_t rank = 0; rank < 2; rank++) {
    const auto blocks = list_blocks(shape, {.expert = 2, .expert_rank = rank}), whole = list_blocks(shape);
    for (size_t b = 0; b < blocks.size(); b++) {
      const BlockSpec& spec = blocks[b];
      const bool layer = spec.kind == BlockKind::layer;
      const auto count = static_cast<size_t>(layer ? shape.experts.count : 0);
      ASSERT_EQ(whole[b].parts.size(), 1 + count);
      ASSERT_EQ(spec.parts.size(), 1 + count / 2);
      EXPECT_EQ(by_ranks(whole[b].parts).size(), 1u);
      EXPECT_EQ(by_ranks(spec.parts).size(), layer ? 2u : 1u);
      EXPECT_EQ(by_ranks(spec.parts).back().range.end, spec.flat_size);
      EXPECT_EQ(spec.parts.back().range.end, spec.flat_size);
      for (size_t part = 0; part < spec.parts.size(); part++) {
        EXPECT_EQ(spec.parts[part].expert, static_cast<int64_t>(part) - 1);
        EXPECT_EQ(spec.parts[part].spread, part > 0);
        EXPECT_EQ(whole[b].parts[part].spread, false);
        EXPECT_EQ(spec.parts[part].range.begin % kPartAlign, 0);
        if (part > 0) {
          EXPECT_LE(spec.parts[part - 1].range.end, spec.parts[part].range.begin);
        }
      }
      size_t part = 0;  // that the parameters are in
      ASSERT_EQ(spec.parameters.size(), whole[b].parameters.size());
      for (size_t i = 0; i < spec.parameters.size(); i++) {
        const ParameterSpec& p = spec.parameters[i];
        EXPECT_EQ(p.name, whole[b].parameters[i].name);
        EXPECT_EQ(p.whole_shape, whole[b].parameters[i].shape);
        holders[p.name] += p.size() > 0;
        if (p.size() == 0) continue;  // another rank's
        part += p.name.ends_with("w1.weight");
        EXPECT_GE(p.offset, spec.parts[part].range.begin);
        EXPECT_LE(p.offset + p.size(), spec.parts[part].range.end);
      }
    }
  }
  for (const auto& [name, ranks] : holders) EXPECT_EQ(ranks, name.find("experts.") == std::string::npos ? 2 : 1) << name;
}

TEST(SplitModels, ComputeInSixteenBitsToo) {
  for (Arch arch : {Arch::gpt2, Arch::llama, Arch::bert}) {
    const Model model{.name = "", .arch = arch, .tied = false};
    const Result whole = run(model, 1, 1, kRing, at::kBFloat16);
    for (const Layout& layout : {Layout{2}, Layout{1, 2}, Layout{1, 2, kUlysses}, Layout{2, 2}})
      expect_same(run(model, layout.tensor, layout.context, layout.form, at::kBFloat16), whole, 2e-3, 0.1);
  }
}

TEST(SplitModels, RunTwiceGiveTheSameBits) {
  const Model model{.name = "", .arch = Arch::llama, .heads = 4, .kv_heads = 2, .dropout = kDrop};
  const Result one = run(model, 2, 2, kRing, at::kFloat), two = run(model, 2, 2, kRing, at::kFloat);
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.gradients, two.gradients);
}

TEST(SplitParameters, RunsOfAPartAreThePartWhereverItIsCutAgain) {
  for (Arch arch : {Arch::gpt2, Arch::llama, Arch::bert})
    for (bool tied : {true, false})
      for (int64_t rank = 0; rank < 3; rank++) {
        const ModelShape shape = shape_of({.name = "", .arch = arch, .tied = tied});
        for (const BlockSpec& block : list_blocks(shape, {.tensor = 3, .tensor_rank = rank}))
          for (const ParameterSpec& p : block.parameters) {
            // By hand: element by element over (before, cut dimension, after).
            std::vector<int64_t> wanted;
            int64_t before = 1, after = 1;
            for (size_t d = 0; d < p.whole_shape.size(); d++)
              (d < p.cut.dimension ? before : after) *= d == p.cut.dimension && p.is_cut() ? 1 : p.whole_shape[d];
            if (!p.is_cut())
              for (int64_t i = 0; i < p.whole_size(); i++) wanted.push_back(i);
            for (int64_t i = 0; i < before && p.is_cut(); i++)
              for (const auto& range : p.cut.ranges)
                for (int64_t j = range.begin; j < range.end; j++)
                  for (int64_t k = 0; k < after; k++)
                    wanted.push_back((i * p.whole_shape[p.cut.dimension] + j) * after + k);
            ASSERT_EQ(p.size(), std::ssize(wanted)) << p.name;
            for (int64_t begin : {int64_t{0}, int64_t{1}, p.size() / 3})
              for (int64_t end : {begin, begin + 1, p.size() / 2, p.size()}) {
                int64_t next = begin;
                for_each_run(p, begin, end, [&](int64_t from, int64_t here, int64_t count) {
                  ASSERT_EQ(here, next) << p.name;
                  for (int64_t i = 0; i < count; i++) ASSERT_EQ(wanted[static_cast<size_t>(here + i)], from + i) << p.name;
                  next += count;
                });
                EXPECT_EQ(next, std::max(begin, end)) << p.name;
              }
          }
      }
}

TEST(SplitParameters, AreCutExactlyWhereRanksDifferAndPartsAddUp) {
  const ModelShape shape = shape_of({.name = "", .arch = Arch::bert, .tied = false});
  const auto whole = list_blocks(shape);
  std::vector<std::vector<BlockSpec>> ranks;
  for (int64_t rank = 0; rank < 4; rank++) ranks.push_back(list_blocks(shape, {.tensor = 4, .tensor_rank = rank}));
  for (size_t b = 0; b < whole.size(); b++)
    for (size_t i = 0; i < whole[b].parameters.size(); i++) {
      const ParameterSpec& p = whole[b].parameters[i];
      EXPECT_FALSE(p.is_cut());
      int64_t sum = 0;
      for (const auto& rank : ranks) {
        const ParameterSpec& part = rank[b].parameters[i];
        EXPECT_EQ(part.name, p.name);
        EXPECT_EQ(part.whole_shape, p.shape);
        sum += part.size();
      }
      EXPECT_EQ(sum, (ranks[0][b].parameters[i].is_cut() ? 1 : 4) * p.size()) << p.name;
      const bool vector_of_all = p.name.find("LayerNorm") != std::string::npos || p.name.ends_with("output.dense.bias");
      const bool matrix_of_layer = whole[b].kind == BlockKind::layer && p.shape.size() == 2;
      EXPECT_FALSE(vector_of_all && ranks[0][b].parameters[i].is_cut()) << p.name;
      EXPECT_TRUE(!matrix_of_layer || ranks[0][b].parameters[i].is_cut()) << p.name;
    }
}

TEST(SplitContext, RanksHoldEveryPositionOnceAndSeeEquallyMuch) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t length : {1, 5, 16, 48, 101}) {
      std::vector<int> holders(static_cast<size_t>(length));
      for (int64_t rank = 0; rank < ranks; rank++) {
        const auto positions = context_positions(length, ranks, rank);
        EXPECT_EQ(std::ssize(positions), context_length(length, ranks, rank));
        EXPECT_TRUE(std::ranges::is_sorted(positions));
        int64_t seen = 0;
        for (int64_t t : positions) {
          holders[static_cast<size_t>(t)]++;
          seen += t + 1;
        }
        EXPECT_TRUE(length % (2 * ranks) != 0 || seen * ranks == length * (length + 1) / 2);
      }
      EXPECT_EQ(holders, std::vector<int>(static_cast<size_t>(length), 1));
    }
}

TEST(SplitFacts, SayWhatIsSentAndKept) {
  struct Try {
    Model model;
    Layout layout;
  };
  const std::vector<Try> tries{
      {{.name = "gpt2"}, {3}},
      {{.name = "gpt2 dropping", .kept = 6}, {2, 2}},
      {{.name = "llama", .arch = Arch::llama, .heads = 8, .kv_heads = 4, .tied = false}, {4}},
      {{.name = "llama", .arch = Arch::llama, .heads = 8, .kv_heads = 4}, {1, 3}},
      {{.name = "llama", .arch = Arch::llama, .heads = 8, .kv_heads = 4}, {2, 2, kUlysses}},
      {sparse("experts", experts_of(Router::noisy)), {2}},
      {sparse("experts", experts_of(Router::softmax)), {1, 3}},
      {sparse("experts", experts_of(Router::sigmoid)), {2, 2, kUlysses}},
      {{.name = "bert", .arch = Arch::bert}, {2, 2}},
      {{.name = "bert dropping", .arch = Arch::bert, .kept = 5}, {3, 2, kUlysses}},
  };
  for (const auto& [model, layout] : tries) {
    SCOPED_TRACE(testing::Message() << model.name << ", tensor " << layout.tensor << ", context " << layout.context);
    const ModelShape shape = shape_of(model);
    MicroBatchShape micro{kSequences, kLength, 1.0, kMicros, model.kept, {}};
    if (model.kept) micro.dropping_layers = {1};
    run_ranks(layout.tensor, layout.context, layout.form, [&](const Ranks& ranks) {
      const RankResult result = run_rank(model, ranks, at::kFloat);
      const auto facts = block_facts(shape, micro, Precision::fp32, Packing::fp32, ranks.split);
      ExchangeFacts tensor, context;
      auto add = [](ExchangeFacts& sum, const ExchangeFacts& x) { sum = {sum.calls + kMicros * x.calls, sum.bytes + kMicros * x.bytes}; };
      for (size_t b = 0; b < facts.size(); b++) {
        add(tensor, facts[b].tensor_forward);
        add(tensor, facts[b].tensor_backward);
        add(context, facts[b].context_forward);
        add(context, facts[b].context_backward);
        int64_t parameters = 0;
        for (const ParameterSpec& p : result.specs[b].parameters) parameters += p.size();
        EXPECT_EQ(facts[b].parameters, parameters);
      }
      EXPECT_EQ(result.tensor.calls, tensor.calls);
      EXPECT_EQ(result.tensor.bytes, tensor.bytes);
      EXPECT_EQ(result.context.calls, context.calls);
      EXPECT_EQ(result.context.bytes, context.bytes);
      // What the layers leave on their tapes, besides the input that the block before gave them.
      auto blocks = make_blocks(shape, ranks);
      const Pass pass = share_of(whole_pass(model, shape.vocab, 0), ranks.split);
      for (size_t b = 1; b + 1 < blocks.size(); b++) {
        const at::Tensor flat = at::zeros({blocks[b]->spec().flat_size}, at::kFloat);
        blocks[b]->bind(flat, {});
        Tape tape;
        at::Tensor x = at::zeros({pass.rows(), shape.hidden}, at::kFloat);
        EXPECT_EQ(static_cast<int64_t>(blocks[b]->forward(x, pass, &tape).nbytes()), facts[b].output_bytes);
        int64_t kept = -static_cast<int64_t>(x.nbytes());
        while (!tape.empty()) kept += static_cast<int64_t>(tape.take().storage().nbytes());
        EXPECT_EQ(std::max<int64_t>(kept, 0), facts[b].saved_bytes);
      }
    });
  }
}

std::string complaint(const ModelShape& shape, const Split& split) {
  try {
    check_split(shape, split);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SplitChecks, NameWhatDoesNotDivideAndWhatDoes) {
  ModelShape shape = shape_of({.name = "", .arch = Arch::llama, .heads = 8, .kv_heads = 4});
  shape.ffn = 36;
  EXPECT_EQ(complaint(shape, {.tensor = 4}), "no error");
  EXPECT_EQ(complaint(shape, {.tensor = 3}), "parallel.tensor: expected a divisor of model.heads (8), got 3; use 1, 2 or 4");
  EXPECT_EQ(complaint(shape, {.tensor = 8}), "parallel.tensor: expected a divisor of model.kv_heads (4), got 8; use 1, 2 or 4");
  shape.ffn = 30;
  EXPECT_EQ(complaint(shape, {.tensor = 4}), "parallel.tensor: expected a divisor of model.ffn (30), got 4; use 1 or 2");
  EXPECT_EQ(complaint(shape, {.context = 3}), "no error");
  EXPECT_EQ(complaint(shape, {.context = 3, .form = kUlysses}),
            "parallel.context: expected a divisor of model.heads (8), got 3; use 1, 2 or 4");
  EXPECT_EQ(complaint(shape, {.tensor = 2, .context = 4, .form = kUlysses}),
            "parallel.context: expected a divisor of model.kv_heads / parallel.tensor (2), got 4; use 1 or 2");
  EXPECT_THROW(list_blocks(shape, {.tensor = 3}), UserError);
  EXPECT_EQ(complaint(shape, {.expert = 2}),
            "parallel.expert: expected 1, as the model has no experts, got 2; remove it, or set model.experts.count");
  shape.experts = experts_of(Router::softmax, 6);
  EXPECT_EQ(complaint(shape, {.expert = 3}), "no error");
  EXPECT_EQ(complaint(shape, {.expert = 4}),
            "parallel.expert: expected a divisor of model.experts.count (6), got 4; use 1, 2, 3 or 6");
  shape.experts = {};
  shape.vocab = 1;
  EXPECT_EQ(complaint(shape, {.tensor = 2}), "parallel.tensor: expected at most model.vocab (1), got 2");
}

}  // namespace
}  // namespace megalith

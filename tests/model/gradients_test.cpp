// Compares whole models in double with central finite differences: the loss of every architecture along a direction of
// every parameter tensor. Dropout depends on (seed, step), so it stays fixed while weights change.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "config/presets.h"
#include "data/batch.h"
#include "families/blocks.h"
#include "model/support.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {
using namespace testing_support;

struct Case {
  std::string name;
  const Family* family;
  bool tied = true;
  int64_t kv_heads = 0;  // 0: the same number as heads
  Dropout dropout = {};
  bool prefix = false;
  bool masked = false;   // only some positions have a target
  bool documents = false;  // attention stays inside documents
  Experts experts = {};
  std::optional<Pooling> pooling = {};  // the head makes vectors of sequences, one of them padded
};

ModelShape shape_of(const Case& c) {
  ModelShape shape = default_shape(*c.family);
  shape.layers = 2;
  shape.hidden = 20;
  shape.heads = 5;
  if (c.family == &llama_family) {
    shape.heads = c.kv_heads ? 2 * c.kv_heads : 5;  // rotary positions need an even head size
    shape.hidden = 4 * shape.heads;
  }
  shape.kv_heads = c.kv_heads;
  shape.ffn = 28;
  shape.vocab = 37;
  shape.context = 16;
  shape.tied = c.tied;
  shape.dropout = c.dropout;
  shape.experts = c.experts;
  if (c.pooling) {
    shape.head = HeadKind::representation;
    shape.pooling = *c.pooling;
  }
  fill_defaults(shape);
  return shape;
}

// Two micro-batches of different sequences, so that gradients accumulate and rows are kept apart twice.
constexpr int64_t kSequences = 2, kLength = 11, kMicros = 2;

struct Model {
  explicit Model(const Case& c) : shape(shape_of(c)), blocks(make_blocks(shape)) {
    at::set_num_threads(1);  // too small for several threads, and run many times
    uint64_t item = 100;
    for (auto& block : blocks) {
      const BlockSpec& spec = block->spec();
      values.push_back(tensor::zeros({spec.flat_size}, at::kDouble));
      gradients.push_back(tensor::zeros({spec.flat_size}, at::kDouble));
      // Larger than the usual initial values, so that every nonlinearity matters.
      for (const ParameterSpec& p : spec.parameters) {
        at::Tensor start = normal({p.size()}, item++).mul_(p.shape.size() == 2 ? 0.3 : 0.2).add_(p.initial);
        values.back().narrow(0, p.offset, p.size()).copy_(start);
      }
      block->bind(values.back(), gradients.back());
    }
    if (shape.ties_table()) head().tie(embedding().table());
    for (int64_t m = 0; m < kMicros; m++) {
      Pass pass;
      pass.sequences = kSequences;
      pass.length = kLength;
      pass.ids_N = ids(kSequences * kLength, shape.vocab, 10 + static_cast<uint64_t>(m));
      pass.targets_N = ids(kSequences * kLength, shape.vocab, 20 + static_cast<uint64_t>(m));
      if (c.masked)
        for (int64_t n = 0; n < pass.targets_N.numel(); n++)
          if (n % 3 != 0) pass.targets_N.mutable_data_ptr<int64_t>()[n] = kNoTarget;
      pass.visibility = c.family == &bert_family ? Visibility::all : c.prefix ? Visibility::prefix : Visibility::causal;
      if (c.prefix) pass.prefix_B = {3 + m, 8};
      if (c.documents)
        pass.document_begin_N = tensor::from_values(
            std::vector<int64_t>{0, 0, 2, 2, 2, 2, 2, 7, 8, 8, 8, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5});
      if (c.pooling) {
        pass.tokens_B = {kLength, 6};
        pass.document_begin_N = tensor::zeros({kSequences * kLength}, at::kLong);
        pass.document_begin_N.narrow(0, kLength + 6, kLength - 6).fill_(6);
      }
      pass.dropout = c.dropout.any();
      pass.seed = 17;
      pass.step = 4;
      pass.first_sequence = m * kSequences;
      pass.gradient_scale = 1.0 / 16;
      pass.explores = true;
      pass.balance_scale = 0.25;
      passes.push_back(std::move(pass));
    }
  }

  EmbeddingBlock& embedding() { return static_cast<EmbeddingBlock&>(*blocks.front()); }
  HeadBlock& head() { return static_cast<HeadBlock&>(*blocks.back()); }

  // A loss of vectors: their products with these. They are also its gradient.
  at::Tensor wanted(const Pass& pass) const {
    return normal({pass.sequences, shape.hidden}, 500 + static_cast<uint64_t>(pass.first_sequence));
  }

  // Returns what the routers added to the loss in the last forward. Stops recording, so that no router is recorded twice.
  double balance(Pass& pass, RoutingRecord& record) {
    double sum = 0;
    for (const LayerRouting& layer : record)
      sum += shape.experts.aux_loss * layer.aux + shape.experts.z_loss * layer.z;
    pass.routing = nullptr;
    return sum * pass.balance_scale / static_cast<double>(pass.length);
  }

  double loss() {
    double sum = 0;
    for (Pass& pass : passes) {
      RoutingRecord record(static_cast<size_t>(shape.layers));
      pass.routing = &record;
      at::Tensor x;
      for (size_t b = 0; b + 1 < blocks.size(); b++) x = blocks[b]->forward(x, pass, nullptr);
      if (shape.head == HeadKind::representation) sum += dot(head().represent(x, pass), wanted(pass));
      else sum += head().loss(x, pass).loss * pass.gradient_scale;
      sum += balance(pass, record);
    }
    return sum;
  }

  double loss_and_gradients() {
    double sum = 0;
    for (Pass& pass : passes) {
      RoutingRecord record(static_cast<size_t>(shape.layers));
      pass.routing = &record;
      std::vector<Tape> tapes(blocks.size());
      at::Tensor x, g;
      for (size_t b = 0; b + 1 < blocks.size(); b++) x = blocks[b]->forward(x, pass, &tapes[b]);
      if (shape.head == HeadKind::representation) {
        sum += dot(head().represent(x, pass), wanted(pass));
        g = head().represent_backward(wanted(pass), x, pass);
      } else {
        sum += head().loss_and_gradient(x, pass, g).loss * pass.gradient_scale;
      }
      for (size_t b = blocks.size() - 1; b-- > 0;) {
        g = blocks[b]->backward(g, pass, tapes[b]);
        EXPECT_TRUE(tapes[b].empty());
      }
      sum += balance(pass, record);
    }
    if (shape.ties_table()) embedding().fold();
    return sum;
  }

  c10::InferenceMode no_graph;
  ModelShape shape;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<at::Tensor> values, gradients;
  std::vector<Pass> passes;
};

// Returns the name of a case for failure messages.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ModelGradients : public testing::TestWithParam<Case> {};

TEST_P(ModelGradients, AgreeWithFiniteDifferencesForEveryParameter) {
  Model model(GetParam());
  double with_tape = model.loss_and_gradients(), without = model.loss();
  EXPECT_NEAR(with_tape, without, 1e-13 * std::abs(without));
  double squares = 0;
  for (const at::Tensor& g : model.gradients) squares += dot(g, g);
  const double norm = std::sqrt(squares);
  double worst = 0;
  uint64_t item = 1000;
  for (size_t b = 0; b < model.blocks.size(); b++)
    for (const ParameterSpec& p : model.blocks[b]->spec().parameters) {
      if (p.sign_rate > 0) continue;  // its gradient counts tokens
      at::Tensor at_start = model.values[b].narrow(0, p.offset, p.size());
      at::Tensor start = at_start.clone(), g = model.gradients[b].narrow(0, p.offset, p.size());
      // A random direction plus the computed gradient, so that the slope is not small by chance.
      at::Tensor direction = normal({p.size()}, item++);
      direction.div_(std::sqrt(dot(direction, direction)));
      if (dot(g, g) > 0) direction.add_(g, 1 / std::sqrt(dot(g, g)));
      double slope = derivative([&](double h) {
        at_start.copy_(start).add_(direction, h);
        return model.loss();
      });
      at_start.copy_(start);
      // Some gradients are always 0: the bias of keys shifts all scores by the same amount. Compare those with the whole
      // norm.
      double error = std::abs(dot(g, direction) - slope) / std::max(std::abs(slope), 1e-3 * norm);
      EXPECT_LT(error, 1e-6) << p.name << ": slope " << slope << ", gradient " << dot(g, direction);
      worst = std::max(worst, error);
    }
  RecordProperty("worst_relative_error", std::to_string(worst));
  std::printf("  %-24s worst relative error %.1e\n", GetParam().name.c_str(), worst);
}

constexpr Dropout kDrop{0.1, 0.2, 0.3};

Case sparse(std::string name, Router router, int64_t top_k, const std::function<void(Experts&)>& change = {}) {
  Case c{std::move(name), &llama_family, false, 2};
  c.experts = {.count = 4, .top_k = top_k, .router = router, .ffn = 12, .aux_loss = 0.5, .z_loss = 0.05};
  if (change) change(c.experts);
  return c;
}

INSTANTIATE_TEST_SUITE_P(
    Architectures, ModelGradients,
    testing::Values(Case{"Gpt2", &gpt2_family}, Case{"Gpt2Untied", &gpt2_family, false},
                    Case{"Gpt2Dropout", &gpt2_family, true, 0, kDrop}, Case{"Gpt2Prefix", &gpt2_family, true, 0, {}, true},
                    Case{"Gpt2SomeTargets", &gpt2_family, true, 0, {}, false, true}, Case{"Llama", &llama_family},
                    Case{"LlamaUntied", &llama_family, false}, Case{"LlamaGrouped", &llama_family, true, 2},
                    Case{"LlamaOneKeyHead", &llama_family, false, 1},
                    Case{"LlamaGroupedDropout", &llama_family, false, 2, kDrop},
                    Case{"LlamaGroupedPrefix", &llama_family, true, 2, {}, true, true},
                    Case{"Bert", &bert_family, true, 0, {}, false, true},
                    Case{"BertUntied", &bert_family, false, 0, {}, false, true},
                    Case{"Gpt2Documents", &gpt2_family, true, 0, {}, false, false, true},
                    Case{"LlamaGroupedDocuments", &llama_family, true, 2, {}, false, false, true},
                    Case{"LlamaDropoutPrefixDocuments", &llama_family, false, 1, kDrop, true, false, true},
                    Case{"BertDocuments", &bert_family, true, 0, {}, false, true, true},
                    Case{"BertAllTargets", &bert_family}, Case{"BertDropout", &bert_family, true, 0, kDrop, false, true}),
    [](const auto& test) { return test.param.name; });

Case vectors(std::string name, const Family& family, Pooling pooling, Dropout dropout = {}) {
  Case c{std::move(name), &family, false, 0, dropout};
  c.pooling = pooling;
  return c;
}

INSTANTIATE_TEST_SUITE_P(
    Representations, ModelGradients,
    testing::Values(vectors("BertMean", bert_family, Pooling::mean), vectors("BertClsDropout", bert_family, Pooling::cls, kDrop),
                    vectors("LlamaLast", llama_family, Pooling::last), vectors("Gpt2Mean", gpt2_family, Pooling::mean)),
    [](const auto& test) { return test.param.name; });

TEST(Representations, DoNotDependOnPadding) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family})
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last}) {
      Model model(vectors("", *family, pooling));
      const auto represent = [&] {
        at::Tensor x;
        for (size_t b = 0; b + 1 < model.blocks.size(); b++) x = model.blocks[b]->forward(x, model.passes[0], nullptr);
        return model.head().represent(x, model.passes[0]);
      };
      const at::Tensor before = represent();
      model.passes[0].ids_N.narrow(0, kLength + 6, kLength - 6).fill_(3);
      EXPECT_TRUE(represent().equal(before)) << family->name;
      model.passes[0].ids_N[kLength + 5] = 5;
      const bool sees_it = family->bidirectional || pooling != Pooling::cls;
      EXPECT_EQ(represent().equal(before), !sees_it) << family->name;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Experts, ModelGradients,
    testing::Values(sparse("Softmax", Router::softmax, 2),
                    sparse("SoftmaxShared", Router::softmax, 3,
                           [](Experts& x) {
                             x.normalise = false;
                             x.shared = 20;
                             x.dense_first = 1;
                           }),
                    sparse("SoftmaxCapacity", Router::softmax, 2,
                           [](Experts& x) {
                             x.capacity = 0.7;
                             x.group = 4;
                           }),
                    sparse("Noisy", Router::noisy, 2), sparse("SwitchJitter", Router::switch_, 1,
                                                             [](Experts& x) {
                                                               x.capacity = 1;
                                                               x.jitter = 0.1;
                                                             }),
                    sparse("Gshard", Router::gshard, 2, [](Experts& x) { x.capacity = 1.25; }),
                    sparse("ExpertChoice", Router::expert_choice, 2, [](Experts& x) { x.across = 2; }),
                    sparse("Sigmoid", Router::sigmoid, 2),
                    sparse("SharedLayers", Router::softmax, 2, [](Experts& x) { x.share_layers = true; })),
    [](const auto& test) { return test.param.name; });

TEST(ModelGradients, AMicroBatchWithoutAnyTargetAddsNothing) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
    Model model(Case{"", family});
    for (Pass& pass : model.passes) pass.targets_N.fill_(kNoTarget);
    EXPECT_EQ(model.loss_and_gradients(), 0);
    for (const at::Tensor& g : model.gradients) EXPECT_EQ(dot(g, g), 0);
  }
}

TEST(ModelGradients, RunTwiceGiveTheSameBits) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
    Case c{"", family, true, 0, kDrop};
    Model one(c), two(c);
    EXPECT_EQ(one.loss_and_gradients(), two.loss_and_gradients());
    for (size_t b = 0; b < one.gradients.size(); b++) EXPECT_TRUE(one.gradients[b].equal(two.gradients[b]));
  }
}

TEST(ModelLoss, PerPositionLossesAddUpAndAreZeroWithoutTarget) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
    Model model(Case{"", family, true, 0, {}, false, true});
    const Pass& pass = model.passes[0];
    at::Tensor x, each;
    for (size_t b = 0; b + 1 < model.blocks.size(); b++) x = model.blocks[b]->forward(x, pass, nullptr);
    LossSums sums = model.head().loss(x, pass, &each);
    ASSERT_EQ(each.numel(), pass.tokens());
    double sum = 0;
    for (int64_t n = 0; n < each.numel(); n++) {
      double loss = doubles(each)[static_cast<size_t>(n)];
      EXPECT_EQ(loss == 0, n % 3 != 0) << n;
      sum += loss;
    }
    EXPECT_NEAR(sum, sums.loss, 1e-12 * sum);
    EXPECT_EQ(sums.targets, (pass.tokens() + 2) / 3);
  }
}

}  // namespace
}  // namespace megalith

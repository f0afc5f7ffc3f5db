// The result must not depend on micro-batches or the number of threads, and a repeated run must give the same.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "engine/support.h"

namespace megalith {
namespace {
using namespace testing_support;

struct Case {
  std::string name;
  const Family* family;
  Dropout dropout = {};
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr Dropout kDrop{0.1, 0.2, 0.1};

class Layout : public testing::TestWithParam<Case> {};

TEST_P(Layout, GradientsDoNotDependOnTheMicroBatch) {
  ModelShape shape = tiny(GetParam().family, GetParam().dropout);
  Batch batch = random_batch(shape, 8, 19);
  auto engine = make_engine(shape);
  at::set_num_threads(2);
  StepInput input{&batch, 5, 1e-3, nullptr};
  StepOutcome whole = engine->run(gradients_only(step_of(shape, batch, 1)), input);
  Tensors wanted = gradients(*engine);
  EXPECT_GT(norm_of(wanted), 0);
  for (int32_t micros : {2, 4, 8}) {
    clear_gradients(*engine);
    StepOutcome cut = engine->run(gradients_only(step_of(shape, batch, micros)), input);
    EXPECT_NEAR(cut.loss, whole.loss, 1e-6 * whole.loss) << micros;
    EXPECT_EQ(cut.targets, whole.targets);
    EXPECT_LT(gradient_distance(gradients(*engine), wanted), 1e-4) << micros;
  }
}

// data.attention: document. Documents packed into one sequence train as if each were a separate sequence.
TEST_P(Layout, PackedDocumentsAreAsIfAlone) {
  if (GetParam().dropout.any()) GTEST_SKIP() << "dropout is keyed by place";
  ModelShape shape = tiny(GetParam().family);
  const std::vector<int64_t> lengths{7, 3, 9};
  Batch packed = random_batch(shape, 1, 19);
  packed.document_begin.resize(19);
  auto engine = make_engine(shape);
  Tensors wanted;
  std::vector<float> losses;
  int64_t begin = 0, targets = 0;
  for (int64_t length : lengths) {
    Batch alone;
    alone.sequences = 1;
    alone.length = length;
    alone.ids.assign(packed.ids.begin() + begin, packed.ids.begin() + begin + length);
    alone.targets.assign(packed.targets.begin() + begin, packed.targets.begin() + begin + length);
    std::fill_n(packed.document_begin.begin() + begin, length, begin);
    std::vector<float> each = engine->losses(alone);
    losses.insert(losses.end(), each.begin(), each.end());
    clear_gradients(*engine);
    StepOutcome outcome = engine->run(gradients_only(step_of(shape, alone, 1)), {&alone, 0, 1e-3, nullptr});
    targets += outcome.targets;
    for (const auto& [name, values] : gradients(*engine)) {
      wanted[name].resize(values.size());
      for (size_t i = 0; i < values.size(); i++) wanted[name][i] += values[i] * static_cast<float>(outcome.targets);
    }
    begin += length;
  }
  for (auto& [name, values] : wanted)
    for (float& value : values) value /= static_cast<float>(targets);
  std::vector<float> together = engine->losses(packed);
  ASSERT_EQ(together.size(), losses.size());
  for (size_t i = 0; i < losses.size(); i++) EXPECT_NEAR(together[i], losses[i], 1e-5) << i;
  clear_gradients(*engine);
  engine->run(gradients_only(step_of(shape, packed, 1)), {&packed, 0, 1e-3, nullptr});
  EXPECT_LT(gradient_distance(gradients(*engine), wanted), 1e-4);
}

TEST_P(Layout, FiftyStepsStayWithinAThousandthForEveryMicroBatch) {
  ModelShape shape = tiny(GetParam().family, GetParam().dropout);
  Batch batch = random_batch(shape, 4, 16);
  std::vector<double> wanted;
  for (int32_t micros : {1, 4}) {
    auto engine = make_engine(shape);
    std::vector<double> losses = memorise(*engine, batch, step_of(shape, batch, micros), 50, 1e-3);
    if (micros == 1) wanted = losses;
    for (size_t i = 0; i < losses.size(); i++) EXPECT_NEAR(losses[i], wanted[i], 1e-3 * wanted[i]) << i;
  }
}

TEST_P(Layout, RerunIsBitIdentical) {
  ModelShape shape = tiny(GetParam().family, GetParam().dropout);
  Batch batch = random_batch(shape, 6, 21);
  auto one = make_engine(shape), two = make_engine(shape);
  at::set_num_threads(2);
  Schedule step = step_of(shape, batch, 3);
  EXPECT_EQ(memorise(*one, batch, step, 10, 1e-3), memorise(*two, batch, step, 10, 1e-3));
  EXPECT_EQ(parameters(*one), parameters(*two));
  EXPECT_EQ(optimizer_state(*one), optimizer_state(*two));
}

TEST_P(Layout, OneThreadAgreesWithTwo) {
  ModelShape shape = tiny(GetParam().family, GetParam().dropout);
  Batch batch = random_batch(shape, 8, 19);
  StepInput input{&batch, 5, 1e-3, nullptr};
  auto engine = make_engine(shape);
  at::set_num_threads(2);
  StepOutcome two = engine->run(gradients_only(step_of(shape, batch, 2)), input);
  Tensors wanted = gradients(*engine);
  clear_gradients(*engine);
  at::set_num_threads(1);
  StepOutcome one = engine->run(gradients_only(step_of(shape, batch, 2)), input);
  EXPECT_NEAR(one.loss, two.loss, 1e-6 * two.loss);
  EXPECT_LT(gradient_distance(gradients(*engine), wanted), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Layout,
                         testing::Values(Case{"Gpt2", &gpt2_family}, Case{"Gpt2Dropout", &gpt2_family, kDrop},
                                         Case{"Llama", &llama_family}, Case{"LlamaDropout", &llama_family, kDrop},
                                         Case{"Bert", &bert_family}, Case{"BertDropout", &bert_family, kDrop}),
                         [](const auto& test) { return test.param.name; });

TEST(LayoutPrefix, GradientsDoNotDependOnTheMicroBatch) {
  ModelShape shape = tiny(&llama_family);
  Batch batch = random_batch(shape, 4, 19);
  batch.prefix = {3, 0, 18, 7};
  auto engine = make_engine(shape);
  StepInput input{&batch, 0, 1e-3, nullptr};
  StepOutcome whole = engine->run(gradients_only(step_of(shape, batch, 1)), input);
  Tensors wanted = gradients(*engine);
  clear_gradients(*engine);
  StepOutcome cut = engine->run(gradients_only(step_of(shape, batch, 4)), input);
  EXPECT_NEAR(cut.loss, whole.loss, 1e-6 * whole.loss);
  EXPECT_LT(gradient_distance(gradients(*engine), wanted), 1e-4);
}

TEST(Layout, DropoutChangesWithTheStepAndOnlyInTraining) {
  ModelShape shape = tiny(&gpt2_family, kDrop);
  Batch batch = random_batch(shape, 2, 19);
  auto engine = make_engine(shape);
  Schedule step = gradients_only(step_of(shape, batch, 1));
  double at_1 = engine->run(step, {&batch, 1, 0, nullptr}).loss, at_2 = engine->run(step, {&batch, 2, 0, nullptr}).loss;
  EXPECT_NE(at_1, at_2);
  EXPECT_EQ(engine->run(step, {&batch, 1, 0, nullptr}).loss, at_1);
}

TEST(Accumulation, IsTheMeanOverAllTargetsNotOverMicroBatches) {
  // Sequences with very different numbers of targets: a mean of means would be wrong.
  ModelShape shape = tiny(&gpt2_family);
  Batch batch = random_batch(shape, 4, 16);
  for (int64_t i = 0; i < 4 * 16; i++)
    if (i / 16 > 0 && i % 16 > i / 16) batch.targets[static_cast<size_t>(i)] = kNoTarget;
  auto engine = make_engine(shape);
  Schedule all = gradients_only(step_of(shape, batch, 4));
  StepOutcome outcome = engine->run(all, {&batch, 0, 0, nullptr});
  Tensors got = gradients(*engine);
  // The expected values: each sequence alone, weighted by its targets.
  Tensors wanted;
  double loss = 0;
  for (int64_t s = 0; s < 4; s++) {
    clear_gradients(*engine);
    Batch one = batch.slice(s, 1);
    StepOutcome o = engine->run(gradients_only(step_of(shape, one, 1)), {&one, 0, 0, nullptr});
    double weight = static_cast<double>(one.target_count()) / static_cast<double>(batch.target_count());
    loss += weight * o.loss;
    for (auto& [name, g] : gradients(*engine)) {
      auto& sum = wanted[name];
      sum.resize(g.size());
      for (size_t i = 0; i < g.size(); i++) sum[i] += static_cast<float>(weight * g[i]);
    }
  }
  EXPECT_NEAR(outcome.loss, loss, 1e-6 * loss);
  EXPECT_LT(gradient_distance(got, wanted), 1e-4);
}

}  // namespace
}  // namespace megalith

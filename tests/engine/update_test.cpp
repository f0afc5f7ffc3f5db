// Tests the update of weights from gradients: clipping, skipping, every optimizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/support.h"

namespace megalith {
namespace {
using namespace testing_support;

bool same_bits(const Tensors& a, const Tensors& b) {  // compares bits, so NaN equals NaN
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.size() == y.second.size() &&
           std::memcmp(x.second.data(), y.second.data(), x.second.size() * sizeof(float)) == 0;
  });
}

class Clipping : public testing::TestWithParam<double> {};

TEST_P(Clipping, ScalesThePlainGradientStepByHand) {
  ModelShape shape = tiny(&llama_family);
  Batch batch = random_batch(shape, 4, 16);
  TrainSettings settings = settings_with(OptimizerKind::sgd);
  settings.momentum = 0;
  settings.weight_decay = 0;
  settings.clip = GetParam();
  auto engine = make_engine(shape, settings);
  StepInput input{&batch, 0, 0.5, nullptr};
  engine->run(gradients_only(step_of(shape, batch, 2)), input);
  Tensors g = gradients(*engine), before = parameters(*engine);
  const double norm = norm_of(g);
  ASSERT_GT(norm, 0.5);  // so that the small clip below does clip
  clear_gradients(*engine);
  StepOutcome outcome = engine->run(step_of(shape, batch, 2), input);
  EXPECT_NEAR(outcome.gradient_norm, norm, 1e-6 * norm);
  EXPECT_FALSE(outcome.skipped);
  double scale = GetParam() == 0 ? 1 : std::min(1.0, GetParam() / (norm + 1e-6));
  double step_norm = 0;
  Tensors after = parameters(*engine);
  for (const auto& [name, old] : before)
    for (size_t i = 0; i < old.size(); i++) {
      double wanted = old[i] - 0.5 * scale * g[name][i];
      ASSERT_NEAR(after[name][i], wanted, 1e-6 * std::abs(wanted) + 1e-7) << name << " " << i;
      step_norm += std::pow(after[name][i] - old[i], 2);
    }
  EXPECT_NEAR(std::sqrt(step_norm), 0.5 * scale * norm, 1e-4 * scale * norm);
}

INSTANTIATE_TEST_SUITE_P(NoneTightAndLoose, Clipping, testing::Values(0.0, 0.1, 1e6));

TEST(Skipping, ANotANumberLeavesEverythingAsItWas) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
    ModelShape shape = tiny(family);
    Batch batch = random_batch(shape, 4, 16);
    auto engine = make_engine(shape);
    Schedule step = step_of(shape, batch, 2);
    engine->run(step, {&batch, 0, 1e-3, nullptr});
    float& victim = engine->state().parameters(1)[2].values[5];
    const float healthy = victim;
    victim = std::numeric_limits<float>::quiet_NaN();
    Tensors values = parameters(*engine), state = optimizer_state(*engine);
    StepOutcome outcome = engine->run(step, {&batch, 1, 1e-3, nullptr});
    EXPECT_TRUE(outcome.skipped);
    EXPECT_TRUE(same_bits(parameters(*engine), values));
    EXPECT_TRUE(same_bits(optimizer_state(*engine), state));
    EXPECT_EQ(engine->counters().updates, 1);
    for (const auto& [name, g] : gradients(*engine))
      EXPECT_TRUE(std::all_of(g.begin(), g.end(), [](float x) { return x == 0; })) << name;
    // The next good step continues normally.
    victim = healthy;
    EXPECT_FALSE(engine->run(step, {&batch, 2, 1e-3, nullptr}).skipped);
    EXPECT_EQ(engine->counters().updates, 2);
    EXPECT_TRUE(std::isfinite(norm_of(parameters(*engine))));
  }
}

TEST(Skipping, AnInfiniteGradientBehindAFiniteLossIsNoticed) {
  // The batch does not use this row of the position embedding, so the loss is finite. The test makes its gradient infinite.
  ModelShape shape = tiny(&gpt2_family);
  Batch batch = random_batch(shape, 2, 8);
  auto engine = make_engine(shape);
  engine->state().gradients(0)[1].values.back() = std::numeric_limits<float>::infinity();
  Tensors before = parameters(*engine);
  StepOutcome outcome = engine->run(step_of(shape, batch, 1), {&batch, 0, 1e-3, nullptr});
  EXPECT_TRUE(std::isfinite(outcome.loss));
  EXPECT_TRUE(outcome.skipped);
  EXPECT_EQ(parameters(*engine), before);
}

class Optimizers : public testing::TestWithParam<OptimizerKind> {};

TEST_P(Optimizers, LearnABatchByHeart) {
  const OptimizerKind kind = GetParam();
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
    ModelShape shape = tiny(family);
    Batch batch = random_batch(shape, 2, 12);
    TrainSettings settings = settings_with(kind);
    settings.weight_decay = 0.01;
    auto engine = make_engine(shape, settings);
    double lr = kind == OptimizerKind::sgd ? 0.3 : kind == OptimizerKind::lion ? 1e-3 : 1e-2;
    std::vector<double> losses = memorise(*engine, batch, step_of(shape, batch, 1), 60, lr);
    EXPECT_LT(losses.back(), 0.6 * losses.front()) << family->name;
    EXPECT_EQ(engine->counters().updates, 60);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers,
                         testing::Values(OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion,
                                         OptimizerKind::adafactor));

TEST(Updates, GradientsAreClearedForTheNextStep) {
  ModelShape shape = tiny(&bert_family);
  Batch batch = random_batch(shape, 2, 12);
  auto engine = make_engine(shape);
  engine->run(step_of(shape, batch, 1), {&batch, 0, 1e-3, nullptr});
  EXPECT_EQ(norm_of(gradients(*engine)), 0);
}

TEST(Updates, ALearningRateOfZeroChangesNothing) {
  ModelShape shape = tiny(&gpt2_family);
  Batch batch = random_batch(shape, 2, 12);
  auto engine = make_engine(shape);
  Tensors before = parameters(*engine);
  engine->run(step_of(shape, batch, 1), {&batch, 0, 0.0, nullptr});
  EXPECT_EQ(parameters(*engine), before);
}

TEST(Updates, WeightDecayShrinksMatricesAndLeavesNormsAndBiases) {
  // Compares one AdamW step with and without decay, with the same gradients: the difference is lr * decay * value.
  ModelShape shape = tiny(&gpt2_family);
  Batch batch = random_batch(shape, 2, 12);
  TrainSettings with, without;
  with.weight_decay = 0.5;
  without.weight_decay = 0;
  auto a = make_engine(shape, with), b = make_engine(shape, without);
  Tensors start = parameters(*a);
  for (Engine* engine : {a.get(), b.get()}) engine->run(step_of(shape, batch, 1), {&batch, 0, 1e-2, nullptr});
  Tensors decayed = parameters(*a), plain = parameters(*b);
  for (const auto& [name, x] : start) {
    bool matrix = name.find("ln_") == std::string::npos && !name.ends_with("bias");
    for (size_t i = 0; i < x.size(); i++)
      ASSERT_NEAR(decayed[name][i] - plain[name][i], matrix ? -1e-2 * 0.5 * x[i] : 0, 1e-7) << name;
  }
}

}  // namespace
}  // namespace megalith

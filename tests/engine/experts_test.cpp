// Models with experts in whole steps: tests that numbers do not change where they must not, and tests of reported metrics.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/support.h"

namespace megalith {
namespace {
using namespace testing_support;

class ExpertSteps : public testing::TestWithParam<Router> {
 protected:
  static ModelShape shape() {
    ModelShape s = tiny_experts(GetParam());
    if (GetParam() == Router::switch_ || GetParam() == Router::gshard) s.experts.capacity = 1.25;
    if (GetParam() == Router::switch_) s.experts.jitter = 0.05;
    s.experts.aux_loss = 0.1;
    return s;
  }
};

TEST_P(ExpertSteps, GradientsDoNotDependOnTheMicroBatch) {
  const ModelShape s = shape();
  const Batch batch = random_batch(s, 8, 19);
  auto engine = make_engine(s);
  at::set_num_threads(2);
  const StepInput input{&batch, 5, 1e-3, nullptr};
  const StepOutcome whole = engine->run(gradients_only(step_of(s, batch, 1)), input);
  const Tensors wanted = gradients(*engine);
  for (int32_t micros : {2, 4, 8}) {
    clear_gradients(*engine);
    const StepOutcome cut = engine->run(gradients_only(step_of(s, batch, micros)), input);
    EXPECT_NEAR(cut.loss, whole.loss, 1e-6 * whole.loss) << micros;
    EXPECT_LT(gradient_distance(gradients(*engine), wanted), 1e-4) << micros;
    for (size_t layer = 0; layer < whole.routing.size(); layer++) {
      EXPECT_EQ(cut.routing[layer].load, whole.routing[layer].load);
      EXPECT_EQ(cut.routing[layer].dropped, whole.routing[layer].dropped);
      EXPECT_NEAR(cut.routing[layer].aux, whole.routing[layer].aux, 1e-5 * std::abs(whole.routing[layer].aux));
    }
  }
}

TEST_P(ExpertSteps, RunAgainWithTheSameBits) {
  const ModelShape s = shape();
  const Batch batch = random_batch(s, 6, 21);
  auto one = make_engine(s), two = make_engine(s);
  at::set_num_threads(2);
  const Schedule step = step_of(s, batch, 3);
  EXPECT_EQ(memorise(*one, batch, step, 10, 1e-3), memorise(*two, batch, step, 10, 1e-3));
  EXPECT_EQ(parameters(*one), parameters(*two));
  EXPECT_EQ(optimizer_state(*one), optimizer_state(*two));
}

TEST_P(ExpertSteps, LearnABatchByHeartInEveryPrecision) {
  for (Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    const ModelShape s = shape();
    const Batch batch = random_batch(s, 4, 16);
    TrainSettings settings;
    settings.precision = precision;
    auto engine = make_engine(s, settings);
    const std::vector<double> losses = memorise(*engine, batch, step_of(s, batch, 2, precision), 60, 1e-2);
    EXPECT_LT(losses.back(), 0.3 * losses.front()) << static_cast<int>(precision);
  }
}

TEST_P(ExpertSteps, TellWhereTokensWent) {
  const ModelShape s = shape();
  const Batch batch = random_batch(s, 4, 16);
  auto engine = make_engine(s);
  const StepOutcome outcome = engine->run(step_of(s, batch, 2), {&batch, 0, 1e-3, nullptr});
  ASSERT_EQ(outcome.routing.size(), 2u);
  for (const LayerRouting& layer : outcome.routing) {
    EXPECT_EQ(layer.tokens, 64);
    int64_t sum = 0;
    for (int64_t load : layer.load) sum += load;
    EXPECT_EQ(sum, GetParam() == Router::expert_choice ? 64 * s.experts.count : 64 * s.experts.top_k);
  }
}

std::string name_of_case(const testing::TestParamInfo<Router>& test) {
  static const char* names[] = {"Softmax", "Noisy", "Switch", "Gshard", "ExpertChoice", "Sigmoid"};
  return names[static_cast<int>(test.param)];
}

INSTANTIATE_TEST_SUITE_P(Routers, ExpertSteps,
                         testing::Values(Router::softmax, Router::noisy, Router::switch_, Router::gshard,
                                         Router::expert_choice, Router::sigmoid),
                         name_of_case);

// Router weights change by less than 16-bit numbers can show. The routing of every token must still change.
TEST(RouterWeights, AreFloat32InEveryPrecision) {
  for (Precision precision : {Precision::bf16, Precision::fp16})
    for (Router router : {Router::softmax, Router::noisy, Router::sigmoid}) {
      const ModelShape s = tiny_experts(router);
      const Batch batch = random_batch(s, 4, 16);
      TrainSettings settings;
      settings.precision = precision;
      const auto entropy = [&](bool changed) {
        auto engine = make_engine(s, settings);
        for (BlockId b = 0; b < static_cast<BlockId>(engine->state().blocks()); b++)
          for (const TensorPiece& part : engine->state().parameters(b))
            if (part.name.ends_with("gate.weight"))  // 16-bit numbers; if changed, a little more
              for (size_t i = 0; i < part.values.size(); i++)
                part.values[i] = 0.125f * static_cast<float>(1 + i % 7) * (i % 2 ? 1 : -1) * (changed ? 1 + 0x1p-14f : 1);
        engine->state().values_changed();
        return engine->run(step_of(s, batch, 2, precision), {&batch, 0, 1e-3, nullptr}).routing[0].entropy;
      };
      EXPECT_NE(entropy(false), entropy(true)) << static_cast<int>(precision) << " " << static_cast<int>(router);
    }
}

TEST(BalancingBias, MovesByItsRateAgainstTheLoadAndNothingElseDoes) {
  ModelShape s = tiny_experts(Router::sigmoid);
  s.experts.bias_rate = 0.25;
  const Batch batch = random_batch(s, 4, 16);
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lion, OptimizerKind::sgd, OptimizerKind::adafactor})
    for (Packing packing : {Packing::fp32, Packing::int8}) {
      if (kind == OptimizerKind::adafactor && packing != Packing::fp32) continue;
      TrainSettings settings = settings_with(kind);
      settings.optimizer_state = packing;
      auto engine = make_engine(s, settings);
      const StepOutcome outcome = engine->run(step_of(s, batch, 2), {&batch, 0, 1e-3, nullptr});
      for (const auto& [name, values] : parameters(*engine)) {
        if (!name.ends_with("e_score_correction_bias")) continue;
        const auto layer = static_cast<size_t>(name[std::string("model.layers.").size()] - '0');
        for (size_t e = 0; e < values.size(); e++) {
          const int64_t over = outcome.routing[layer].load[e] * 4 - outcome.routing[layer].choices;
          EXPECT_EQ(values[e], over > 0 ? -0.25f : over < 0 ? 0.25f : 0.0f) << name << " " << e;
        }
      }
    }
}

// One expert is favoured at first. Later the bias oscillates by its rate around the value that evens the loads. A single
// step shows little, so we average twenty.
TEST(BalancingBias, EvensLoadsOut) {
  ModelShape s = tiny_experts(Router::sigmoid);
  s.experts.bias_rate = 0.002;
  const Batch batch = random_batch(s, 8, 32);
  auto engine = make_engine(s);
  for (BlockId b = 0; b < static_cast<BlockId>(engine->state().blocks()); b++)
    for (const TensorPiece& part : engine->state().parameters(b))
      if (part.name.ends_with("e_score_correction_bias")) part.values[0] = 0.1f;
  const Schedule step = step_of(s, batch, 1);
  const auto excess_of_the_busiest = [&](int from, int to) {  // load above the even share, mean of steps and layers
    double sum = 0;
    for (int i = from; i < to; i++)
      for (const LayerRouting& layer : engine->run(step, {&batch, i, 1e-4, nullptr}).routing)
        sum += static_cast<double>(*std::max_element(layer.load.begin(), layer.load.end())) * 4 /
                   static_cast<double>(layer.choices) - 1;
    return sum / (to - from) / 2;
  };
  const double first = excess_of_the_busiest(0, 1);
  EXPECT_GT(first, 0.5);
  excess_of_the_busiest(1, 80);
  EXPECT_LT(excess_of_the_busiest(80, 100), 0.25 * first);
}

}  // namespace
}  // namespace megalith

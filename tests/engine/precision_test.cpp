// 16-bit computation with float32 master weights.
#include <gtest/gtest.h>

#include "engine/support.h"

namespace megalith {
namespace {
using namespace testing_support;

TrainSettings in(Precision precision) {
  TrainSettings settings;
  settings.precision = precision;
  return settings;
}

class SixteenBits : public testing::TestWithParam<std::tuple<const Family*, Precision>> {};

TEST_P(SixteenBits, TrainsLikeFloat32) {
  auto [family, precision] = GetParam();
  ModelShape shape = tiny(family);
  Batch batch = random_batch(shape, 2, 12);
  auto wide = make_engine(shape), narrow = make_engine(shape, in(precision));
  std::vector<double> wanted = memorise(*wide, batch, step_of(shape, batch, 2), 40, 5e-3);
  std::vector<double> losses = memorise(*narrow, batch, step_of(shape, batch, 2, precision), 40, 5e-3);
  EXPECT_NEAR(losses.front(), wanted.front(), (precision == Precision::bf16 ? 5e-3 : 1e-3) * wanted.front());
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  EXPECT_NEAR(losses.back(), wanted.back(), 0.1 * wanted.front());
  EXPECT_EQ(narrow->counters().updates, 40);  // no step overflowed
}

TEST_P(SixteenBits, GradientsAreThoseOfFloat32UpToRounding) {
  auto [family, precision] = GetParam();
  ModelShape shape = tiny(family);
  Batch batch = random_batch(shape, 4, 16);
  auto wide = make_engine(shape), narrow = make_engine(shape, in(precision));
  Schedule step = gradients_only(step_of(shape, batch, 2));
  wide->run(step, {&batch, 0, 0, nullptr});
  narrow->run(step, {&batch, 0, 0, nullptr});
  Tensors wanted = gradients(*wide), got = gradients(*narrow);
  const double scale = narrow->counters().loss_scale.scale, global = norm_of(wanted);
  EXPECT_EQ(scale, precision == Precision::fp16 ? 65536 : 1);
  double squares = 0;
  for (const auto& [name, g] : wanted)
    for (size_t i = 0; i < g.size(); i++) squares += std::pow(got[name][i] / scale - g[i], 2);
  EXPECT_LT(std::sqrt(squares), (precision == Precision::bf16 ? 3e-2 : 4e-3) * global);
}

INSTANTIATE_TEST_SUITE_P(All, SixteenBits,
                         testing::Combine(testing::Values(&gpt2_family, &llama_family, &bert_family),
                                          testing::Values(Precision::bf16, Precision::fp16)));

TEST(LossScaling, HalvesOnOverflowUntilStepsAreGood) {
  ModelShape shape = tiny(&gpt2_family);
  Batch batch = random_batch(shape, 1, 8);
  auto engine = make_engine(shape, in(Precision::fp16));
  engine->restore({0, {LossScale::kLargest, 0}});
  Schedule step = step_of(shape, batch, 1, Precision::fp16);
  Tensors before = parameters(*engine);
  double scale = LossScale::kLargest;
  int skipped = 0;
  while (true) {
    StepOutcome outcome = engine->run(step, {&batch, 0, 1e-3, nullptr});
    EXPECT_EQ(outcome.loss_scale, scale);
    EXPECT_TRUE(std::isfinite(outcome.loss));  // only the gradient overflows
    if (!outcome.skipped) break;
    scale /= 2;
    ASSERT_LT(++skipped, 20);
    EXPECT_EQ(engine->counters().loss_scale.scale, scale);
    EXPECT_EQ(engine->counters().updates, 0);
    EXPECT_EQ(parameters(*engine), before);
  }
  EXPECT_GT(skipped, 0);
  EXPECT_EQ(engine->counters().updates, 1);
  EXPECT_EQ(engine->counters().loss_scale.good_steps, 1);
  EXPECT_NE(parameters(*engine), before);
}

TEST(LossScaling, DoesNotShowInTheNormOrTheUpdate) {
  ModelShape shape = tiny(&llama_family);
  Batch batch = random_batch(shape, 4, 12);
  TrainSettings settings = in(Precision::fp16);
  settings.optimizer = OptimizerKind::sgd;  // AdamW would hide a wrong factor of the gradient: it cancels
  settings.momentum = settings.weight_decay = 0;
  std::vector<double> norms;
  std::vector<Tensors> moves;
  for (double scale : {64.0, 1024.0}) {
    auto engine = make_engine(shape, settings);
    engine->restore({0, {scale, 0}});
    Tensors before = parameters(*engine);
    norms.push_back(engine->run(step_of(shape, batch, 1, Precision::fp16), {&batch, 0, 0.5, nullptr}).gradient_norm);
    moves.push_back(parameters(*engine));
    for (auto& [name, x] : moves.back())
      for (size_t i = 0; i < x.size(); i++) x[i] -= before[name][i];
  }
  EXPECT_NEAR(norms[0], norms[1], 1e-3 * norms[0]);
  EXPECT_LT(gradient_distance(moves[0], moves[1]), 5e-2);
  EXPECT_NEAR(norm_of(moves[0]), 0.5 * std::min(1.0, norms[0]), 1e-3 * norm_of(moves[0]));  // clipped at 1
}

}  // namespace
}  // namespace megalith

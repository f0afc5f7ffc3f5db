#include "optim/rate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace megalith {
namespace {

TrainSettings settings(Decay decay, int64_t steps = 101, int64_t warmup = 11) {
  TrainSettings s;
  s.lr = 1.0;
  s.min_lr = 0.2;
  s.steps = steps;
  s.warmup = warmup;
  s.decay = decay;
  s.decay_steps = steps / 5;
  return s;
}

// The formula of the reference page: warm-up, then lr, then linear to min_lr in the last `fall` steps. `step` counts from 0.
double by_hand(double step, double steps, double warmup, double fall) {
  if (step < warmup - 1) return (step + 1) / warmup;
  const double left = steps - 1 - step;  // steps until the last one
  return left >= fall ? 1.0 : left <= 0 ? 0.2 : 0.2 + 0.8 * left / fall;
}

}  // namespace

TEST(LearningRate, WarmsUpLinearlyAndReachesItsPeakAtTheLastWarmUpStep) {
  for (Decay decay : {Decay::cosine, Decay::linear, Decay::inverse_sqrt, Decay::constant, Decay::wsd}) {
    const TrainSettings s = settings(decay);
    for (int64_t step = 0; step < 11; step++)
      EXPECT_DOUBLE_EQ(learning_rate(s, step), static_cast<double>(step + 1) / 11) << step;
    EXPECT_LE(learning_rate(s, 11), 1.0);
    EXPECT_GT(learning_rate(s, 11), 0.95);
  }
}

TEST(LearningRate, BetweenStepsItNeverJumps) {
  for (Decay decay : {Decay::cosine, Decay::linear, Decay::inverse_sqrt, Decay::constant, Decay::wsd}) {
    const TrainSettings s = settings(decay);
    for (double step = 0; step < 99; step += 0.125)
      EXPECT_LT(std::abs(learning_rate(s, step + 0.125) - learning_rate(s, step)), 0.0125) << step;
    EXPECT_EQ(learning_rate(s, 10), 1.0);
    EXPECT_TRUE(decay == Decay::constant || decay == Decay::wsd || learning_rate(s, 10.5) < 1);
  }
}

TEST(LearningRate, CosineAndLinearEndAtTheLowestRateInTheLastStep) {
  for (Decay decay : {Decay::cosine, Decay::linear}) {
    const TrainSettings s = settings(decay);
    EXPECT_NEAR(learning_rate(s, 100), 0.2, 1e-15);
    EXPECT_NEAR(learning_rate(s, 55), 0.6, 1e-15);  // half-way between steps 10 and 100
    EXPECT_EQ(learning_rate(s, 1000), 0.2);
    for (int64_t step = 11; step <= 100; step++)
      EXPECT_LT(learning_rate(s, step), learning_rate(s, step - 1));
  }
  EXPECT_NEAR(learning_rate(settings(Decay::linear), 19), 0.92, 1e-15);
  EXPECT_NEAR(learning_rate(settings(Decay::cosine), 40), 0.2 + 0.8 * 0.75, 1e-15);  // cos(60 degrees) = 1/2
}

TEST(LearningRate, WarmUpStableDecayIsFlatUntilItsLastSteps) {
  for (const auto& [steps, warmup, fall] : std::vector<std::array<int, 3>>{
           {101, 11, 20}, {101, 11, 90}, {50, 0, 7}, {10, 9, 1}, {1000, 1, 333}}) {
    TrainSettings s = settings(Decay::wsd, steps, warmup);
    s.decay_steps = fall;
    for (double step = 0; step < steps + 3; step += 0.25)
      EXPECT_NEAR(learning_rate(s, step), by_hand(step, steps, warmup, fall), 1e-12) << steps << " steps, at " << step;
    s.lr = 0.003, s.min_lr = 0.0003;  // exactly lr before it falls, with any rounding
    for (double step = warmup; step <= steps - 1 - fall; step += 0.5) EXPECT_EQ(learning_rate(s, step), 0.003) << step;
    s.lr = 1, s.min_lr = 0.2;
    EXPECT_LT(learning_rate(s, steps - fall), 1.0);
    EXPECT_NEAR(learning_rate(s, steps - 1), 0.2, 1e-15);
  }
  TrainSettings flat = settings(Decay::wsd);
  flat.decay_steps = 0;
  EXPECT_EQ(learning_rate(flat, 100), 1.0);
  EXPECT_EQ(learning_rate(flat, 100.5), 1.0);
}

TEST(LearningRate, ALongerWarmUpStableDecayHasTheSameRatesUntilTheShorterOneDecays) {
  const TrainSettings shorter = settings(Decay::wsd, 100, 11), longer = settings(Decay::wsd, 250, 11);
  for (double step = 0; step <= 79; step += 0.5) EXPECT_EQ(learning_rate(shorter, step), learning_rate(longer, step)) << step;
  EXPECT_LT(learning_rate(shorter, 80), learning_rate(longer, 80));
}

TEST(LearningRate, InverseSquareRootHalvesInFourTimesTheSteps) {
  const TrainSettings s = settings(Decay::inverse_sqrt);
  EXPECT_DOUBLE_EQ(learning_rate(s, 43), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(settings(Decay::inverse_sqrt, 100, 0), 3), 0.5);
}

TEST(LearningRate, WithoutWarmUpStartsAtThePeak) {
  for (Decay decay : {Decay::cosine, Decay::linear, Decay::inverse_sqrt, Decay::constant, Decay::wsd})
    EXPECT_EQ(learning_rate(settings(decay, 50, 0), 0), 1.0);
  EXPECT_EQ(learning_rate(settings(Decay::constant, 50, 0), 49), 1.0);
}

TEST(LearningRate, VeryShortRunsHaveARate) {
  EXPECT_EQ(learning_rate(settings(Decay::cosine, 1, 0), 0), 1.0);
  EXPECT_EQ(learning_rate(settings(Decay::cosine, 5, 5), 4), 1.0);
  EXPECT_EQ(learning_rate(settings(Decay::linear, 2, 0), 1), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(settings(Decay::cosine, 5, 10), 4), 0.5);  // ends inside warm-up
}

}  // namespace megalith

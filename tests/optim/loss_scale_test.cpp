#include "optim/loss_scale.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace megalith {

TEST(LossScale, HalvesOnOverflowAndDoublesAfterManyGoodSteps) {
  LossScale scale;
  EXPECT_EQ(scale.scale(), 65536);
  scale.after_step(false);
  EXPECT_EQ(scale.scale(), 32768);
  for (int i = 0; i < 1999; i++) scale.after_step(true);
  EXPECT_EQ(scale.scale(), 32768);
  scale.after_step(true);
  EXPECT_EQ(scale.scale(), 65536);
}

TEST(LossScale, AnOverflowStartsTheCountAgain) {
  LossScale scale;
  for (int i = 0; i < 1999; i++) scale.after_step(true);
  scale.after_step(false);
  for (int i = 0; i < 1999; i++) scale.after_step(true);
  EXPECT_EQ(scale.scale(), 32768);
}

TEST(LossScale, StopsGrowingAtItsLargest) {
  LossScale scale;
  for (int i = 0; i < 20 * 2000; i++) scale.after_step(true);
  EXPECT_EQ(scale.scale(), 16777216);
}

TEST(LossScale, GoesOnFromItsSavedState) {
  LossScale scale;
  for (int i = 0; i < 1234; i++) scale.after_step(true);
  LossScale resumed(scale.state());
  for (int i = 0; i < 766; i++) resumed.after_step(true);
  EXPECT_EQ(resumed.scale(), 131072);
}

TEST(LossScale, ADamagedStateIsRefused) {
  EXPECT_THROW(LossScale({-1, 0}), UserError);
  EXPECT_THROW(LossScale({0, 0}), UserError);
  EXPECT_THROW(LossScale({65536, -1}), UserError);
  EXPECT_THROW(LossScale({65536, 2000}), UserError);
  EXPECT_THROW(LossScale({std::numeric_limits<double>::quiet_NaN(), 0}), UserError);
}

}  // namespace megalith

#include "train/step_times.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

StepShape shape_of(int64_t samples, int64_t length, int64_t pace = 0) {
  return {.samples = samples, .length = length, .pace = pace};
}
std::vector<Span> one_op(double seconds) { return {{0, seconds}}; }

TEST(StepTimes, AreOfTheLargestStepsAlone) {
  StepTimes times;
  EXPECT_TRUE(times.empty());
  auto add = [&](const StepShape& shape, double seconds) { times.add(shape, seconds, one_op(seconds)); };
  add(shape_of(4, 16), 1);
  add(shape_of(4, 16), 3);
  EXPECT_EQ(times.size(), 2u);
  add(shape_of(4, 32, 8), 5);  // more tokens
  EXPECT_EQ(times.size(), 1u);
  EXPECT_EQ(times.usual(), 5);
  add(shape_of(4, 32, 16), 6);  // the same number of tokens, fewer of them dropped
  EXPECT_EQ(times.usual(), 6);
  add(shape_of(2, 64), 8);  // the same number of tokens in longer sequences, none of them dropped
  EXPECT_EQ(times.shape(), shape_of(2, 64));
  add(shape_of(4, 32, 16), 100);  // smaller ones no longer count
  EXPECT_EQ(times.size(), 1u);
  EXPECT_EQ(times.usual(), 8);
}

TEST(StepTimes, TheFirstOfSeveralIsNotInTheMeanOfOps) {
  StepTimes times;
  times.add(shape_of(1, 8), 9, one_op(9));
  EXPECT_EQ(times.mean_ops(), std::vector<double>{9});  // there is no other measurement
  times.add(shape_of(1, 8), 2, one_op(2));
  times.add(shape_of(1, 8), 4, one_op(4));
  EXPECT_EQ(times.mean_ops(), std::vector<double>{3});
  EXPECT_EQ(times.usual(), 4);
  EXPECT_EQ(step_seconds(times.typical()), 4);
  times.clear();
  EXPECT_TRUE(times.empty());
}

}  // namespace
}  // namespace megalith

#include "data/order.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace megalith {

TEST(SampleOrder, EveryEpochHasEverySampleOnceInAnOrderOfItsOwn) {
  const int64_t samples = 37;
  SampleOrder order(samples, 4);
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 5; epoch++) {
    std::set<int64_t> seen;
    std::vector<int64_t> sequence;
    for (int64_t i = 0; i < samples; i++) {
      const EpochSample at = order.at(epoch * samples + i);
      EXPECT_EQ(at.epoch, epoch);
      EXPECT_GE(at.sample, 0);
      EXPECT_LT(at.sample, samples);
      seen.insert(at.sample);
      sequence.push_back(at.sample);
    }
    EXPECT_EQ(std::ssize(seen), samples);
    orders.insert(sequence);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(SampleOrder, DependsOnTheSeed) {
  int same = 0;
  for (int64_t i = 0; i < 1000; i++) same += SampleOrder(1000, 1).at(i) == SampleOrder(1000, 2).at(i);
  EXPECT_LT(same, 10);  // one is expected
}

TEST(SampleOrder, ReachesAnyPositionOfAHugeDataSetAtOnce) {
  SampleOrder order(1'000'000'000'000, 1);
  const EpochSample at = order.at(3'141'592'653'589);
  EXPECT_EQ(at.epoch, 3);
  EXPECT_LT(at.sample, 1'000'000'000'000);
  EXPECT_EQ(order.at(3'141'592'653'589), at);
}

}  // namespace megalith

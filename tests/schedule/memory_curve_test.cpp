#include "schedule/predict/memory_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/random_schedules.h"
#include "schedule/predict/simulator.h"
#include "schedule/toy_speeds.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

TEST(MemoryCurve, ItsHighestPointIsTheSimulatorsPeakAndItEndsAsItBegan) {
  Random random(5);
  for (int i = 0; i < 200; i++) {
    const Schedule schedule = random_schedule(random);
    const Simulation simulated = simulate(schedule, predict_costs(schedule, kToySpeeds));
    const auto points = memory_over_time(schedule, simulated.spans);
    int64_t most = 0;
    for (size_t p = 0; p < points.size(); p++) {
      most = std::max(most, points[p].use.total());
      if (p > 0) { EXPECT_GT(points[p].seconds, points[p - 1].seconds); }
    }
    EXPECT_EQ(most, simulated.peak_bytes);
    EXPECT_EQ(points.back().use.bytes, resident(schedule).bytes);
    EXPECT_LE(points.back().seconds, simulated.seconds);
  }
}

TEST(MemoryCurve, FollowsASmallStepByHand) {
  // Forward of the embedding leaves 701 + 101 bytes and has a workspace of 31 bytes. The loss consumes the 101 bytes and
  // leaves a gradient of 101 bytes. Backward consumes all.
  const Schedule step = training_step(make_blocks(2, false), 1);
  const int64_t rest = resident(step).total();
  std::vector<Span> spans(step.ops.size());
  spans[find(step, ops::forward, 0, 0)] = {1, 2};
  spans[find(step, ops::loss, 1, 0)] = {2, 4};
  spans[find(step, ops::backward, 0, 0)] = {5, 6};
  std::vector<std::pair<double, int64_t>> seen;
  for (const MemoryPoint& p : memory_over_time(step, spans)) seen.emplace_back(p.seconds, p.use.total() - rest);
  const std::vector<std::pair<double, int64_t>> expected{
      {0, 0}, {1, 833}, {2, 701 + 101 + 31 + 101}, {4, 701 + 101}, {5, 701 + 101 + 31}, {6, 0}};
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace megalith

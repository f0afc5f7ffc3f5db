#include "schedule/predict/roofline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "schedule/random_schedules.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/predict/simulator.h"
#include "schedule/show/step_json.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

const MachineSpeeds kSpeeds{.flops = 1e9, .memory_bandwidth = 1e8, .disk_read = 1e7, .disk_write = 1e7, .spill_read = 2e7,
                            .spill_write = 1e7, .spill_mixed = 2.5e7, .spill_core_s = 1e-9, .op_overhead_s = 0, .cores = 2};
constexpr auto kCores = static_cast<size_t>(Resource::cores), kDisk = static_cast<size_t>(Resource::disk);

TEST(Limits, RecomputationAndSpillingDoNotAddUsefulWork) {
  const auto blocks = make_blocks(6, true);
  const auto plain = useful_seconds(training_step(blocks, 3), kSpeeds);
  const Schedule again = training_step(blocks, 3, ComputeOrder::by_block, recompute_all(blocks));
  EXPECT_EQ(useful_seconds(again, kSpeeds), plain);
  const auto spilled = useful_seconds(with_residency(again, std::vector<Placement>(6, Placement::on_disk), 2), kSpeeds);
  EXPECT_EQ(spilled[kCores], plain[kCores]);
  EXPECT_EQ(plain[kDisk], 0);
  EXPECT_DOUBLE_EQ(plain[kCores], 6 * 3 * 6e6 / 1e9);
}

TEST(Limits, TheDiskMustMove36BytesAParameterAtTheMixedSpeed) {
  // Computed by hand: load_updated reads p, g, m, v and writes p, m, v. Layers and head are loaded again for backward unless
  // they stay. Every gradient is offloaded. The embedding's backward needs no parameters.
  const auto blocks = make_blocks(8, false);
  const Schedule step =
      with_residency(training_step(blocks, 2, ComputeOrder::by_block), std::vector<Placement>(8, Placement::on_disk), 1);
  int64_t read = 0, written = 0;
  for (const Op& op : step.ops) {
    if (op.kind == ops::load_updated) read += 16 * blocks[op.block].parameters, written += 12 * blocks[op.block].parameters;
    if (op.kind == ops::load) read += 4 * blocks[op.block].parameters;
    if (op.kind == ops::offload_gradient) written += 4 * blocks[op.block].parameters;
  }
  const double expected = 2.0 * double(written) / 2.5e7 + double(read - written) / 2e7;
  const auto useful = useful_seconds(step, kSpeeds);
  EXPECT_DOUBLE_EQ(useful[kDisk], expected);
  const auto lanes = traffic_by_lane(step);
  EXPECT_EQ(lanes[size_t(Lane::read)].read, read);
  EXPECT_EQ(lanes[size_t(Lane::write)].written + lanes[size_t(Lane::read)].written, written);
}

TEST(Limits, NoStepIsFasterThanItsUsefulProducts) {
  Random random(7);
  for (int i = 0; i < 100; i++) {
    auto blocks = make_blocks(pick(random, 3, 7), pick(random, 0, 1) == 1);
    const auto placement = random_placement(random, blocks.size());
    const Schedule step = with_residency(random_step(random, blocks, pick(random, 1, 4)), placement, pick(random, 1, 3));
    const auto useful = useful_seconds(step, kSpeeds);
    const double seconds = simulate(step, predict_costs(step, kSpeeds)).seconds;
    EXPECT_GE(seconds * (1 + 1e-9), useful[kCores]);
  }
}

TEST(StepJson, OpsOfOneKindAndBlockAreSummedAndNothingIsLost) {
  const Schedule step = training_step(make_blocks(3, false), 2);
  std::vector<double> predicted, measured;
  for (size_t op = 0; op < step.ops.size(); op++) {
    predicted.push_back(double(op));
    measured.push_back(100 * double(op));
  }
  const auto ops = ops_json(step, predicted, measured);
  double sum = 0, sum_measured = 0;
  int64_t count = 0;
  for (const auto& entry : ops) {
    sum += entry.at("predicted_s").get<double>();
    sum_measured += entry.at("measured_s").get<double>();
    count += entry.at("count").get<int64_t>();
    if (entry.at("op") == "forward" && entry.at("block") == "layer 0") {
      EXPECT_EQ(entry.at("count"), 2);
      EXPECT_DOUBLE_EQ(entry.at("predicted_s"), find(step, ops::forward, 1, 0) + find(step, ops::forward, 1, 1));
    }
    if (entry.at("op") == "prepare update") { EXPECT_FALSE(entry.contains("block")); }
  }
  const double all = double(step.ops.size() * (step.ops.size() - 1)) / 2;
  EXPECT_DOUBLE_EQ(sum, all);
  EXPECT_DOUBLE_EQ(sum_measured, 100 * all);
  EXPECT_EQ(count, int64_t(step.ops.size()));
}

}  // namespace
}  // namespace megalith

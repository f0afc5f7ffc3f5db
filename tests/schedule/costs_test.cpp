#include "schedule/predict/costs.h"

#include <gtest/gtest.h>

#include "schedule/random_schedules.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

constexpr auto kCores = static_cast<size_t>(Resource::cores);

struct StreamCosts : testing::Test {
  Cost cost_of(OpKind kind) const {
    const Schedule plain = training_step(blocks, 1, ComputeOrder::by_block);
    const Schedule step = with_residency(plain, std::vector<Placement>(4, Placement::on_disk), 1);
    const std::vector<Cost> costs = predict_costs(step, speeds);
    for (size_t op = 0; op < costs.size(); op++)
      if (step.ops[op].kind == kind && step.ops[op].block == 1) return costs[op];
    ADD_FAILURE() << "no such op";
    return {};
  }
  std::vector<BlockFacts> blocks = make_blocks(4, false);
  MachineSpeeds speeds{.flops = 1e9, .memory_bandwidth = 1e12, .disk_read = 1e7, .disk_write = 1e7, .spill_read = 2e7,
                       .spill_write = 1e7, .spill_mixed = 4e7, .spill_core_s = 1e-9, .spill_kernel_s = 0.25e-9,
                       .op_overhead_s = 0, .cores = 4};
};

TEST_F(StreamCosts, AnOpThatMovesStateTakesWhatTheTrialSaysAndTheDiskSpeedWithoutOne) {
  const auto bytes = 28.0 * static_cast<double>(blocks[1].parameters);  // 16 come, 12 go
  EXPECT_DOUBLE_EQ(cost_of(ops::load_updated).seconds, bytes / 4e7);
  speeds.load_updated = {.wait_s = 0.003, .bytes_per_s = 1e7};
  speeds.load_updated_scarce = {.wait_s = 0.002, .bytes_per_s = 5e6};
  EXPECT_DOUBLE_EQ(cost_of(ops::load_updated).seconds, 0.002 + bytes / 5e6);
  blocks[1].streams_amply = true;
  EXPECT_DOUBLE_EQ(cost_of(ops::load_updated).seconds, 0.003 + bytes / 1e7);
}

// Four cores share the checksums where staging is ample; the kernel's part one of them has, and all wait for it.
TEST_F(StreamCosts, ALaneTakesFromAllCoresWhatItDoesItself) {
  const Cost alone = cost_of(ops::load_updated);
  blocks[1].streams_amply = true;
  const Cost shared = cost_of(ops::load_updated);
  const double bytes = 28.0 * static_cast<double>(blocks[1].parameters);
  EXPECT_NEAR(alone.use[kCores] * alone.seconds, bytes * 1e-9, bytes * 1e-11);
  EXPECT_NEAR(shared.use[kCores] * shared.seconds, bytes * (0.25e-9 + 0.75e-9 / 4), bytes * 1e-11);
}

}  // namespace
}  // namespace megalith

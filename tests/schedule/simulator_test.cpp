#include "schedule/predict/simulator.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "schedule/check/checker.h"
#include "schedule/random_schedules.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

constexpr std::array<double, kResources> kCores{1}, kMemory{0, 1}, kDisk{0, 0, 1}, kNetwork{0, 0, 0, 1}, kNone{};

// Gradient norms of block 0 represent any work: only lanes, dependencies and costs matter here.
struct Job {
  Lane lane;
  Cost cost;
  std::vector<OpId> after = {};
};

struct Jobs {
  explicit Jobs(const std::vector<Job>& jobs) {
    for (const Job& job : jobs) {
      schedule.ops.push_back({.kind = ops::gradient_norm, .block = 0, .lane = job.lane, .after = job.after});
      costs.push_back(job.cost);
    }
  }
  Schedule schedule{.blocks = make_blocks(2, false), .micros = 1, .training = true, .ops = {}};
  std::vector<Cost> costs;
};

Simulation run(const std::vector<Job>& jobs) {
  const Jobs all(jobs);
  return simulate(all.schedule, all.costs);
}

TEST(Simulator, OneLaneTakesTheSumOfItsOps) {
  const Simulation s =
      run({{Lane::compute, {1, kCores}}, {Lane::compute, {2, kCores}}, {Lane::compute, {0, kNone}}});
  EXPECT_DOUBLE_EQ(s.seconds, 3);
  EXPECT_DOUBLE_EQ(s.spans[1].start, 1);
  EXPECT_DOUBLE_EQ(s.spans[2].end, 3);
  EXPECT_TRUE(s.stalls.empty());
}

TEST(Simulator, OpsOnDifferentResourcesDoNotDisturbEachOther) {
  const Simulation s = run({{Lane::compute, {3, kCores}}, {Lane::write, {2, kDisk}}});
  EXPECT_DOUBLE_EQ(s.seconds, 3);
  EXPECT_DOUBLE_EQ(s.spans[1].end, 2);
  EXPECT_DOUBLE_EQ(s.busy[static_cast<size_t>(Lane::write)], 2);
}

TEST(Simulator, TwoOpsOnOneResourceRunAtHalfSpeedUntilOneEnds) {
  const Simulation s = run({{Lane::compute, {1, kMemory}}, {Lane::send, {3, kMemory}}});
  EXPECT_DOUBLE_EQ(s.spans[0].end, 2);  // both at half speed for 2 s; then 2 s remain at full speed
  EXPECT_DOUBLE_EQ(s.spans[1].end, 4);
  EXPECT_DOUBLE_EQ(s.slowed[static_cast<size_t>(Resource::memory)], 2);  // each lost 1 s
}

TEST(Simulator, ResourcesAreSharedInProportionToDemand) {
  // The ops ask for 0.9 + 0.6 of the disk, so each gets 1 / 1.5 of its speed.
  const Simulation s = run({{Lane::read, {2, {0, 0, 0.9}}}, {Lane::write, {2, {0, 0, 0.6}}}});
  EXPECT_DOUBLE_EQ(s.seconds, 3);
}

TEST(Simulator, TheScarcestResourceSetsTheSpeed) {
  const Simulation s = run({{Lane::compute, {1, {0.5, 1, 0}}}, {Lane::send, {1, {0.7, 0.5, 0}}}});
  // The ops ask for 1.2 of the cores and 1.5 of the memory. Both use both, so both run at 1 / 1.5 of their speed.
  EXPECT_DOUBLE_EQ(s.seconds, 1.5);
  EXPECT_DOUBLE_EQ(s.slowed[static_cast<size_t>(Resource::cores)], 0);
  EXPECT_DOUBLE_EQ(s.slowed[static_cast<size_t>(Resource::memory)], 1);
}

// The job of a rank, its host, and the number of ranks of the host that do the same job.
struct RankJob {
  std::array<double, kResources> use;
  int32_t host = 0, copies = 1;
};
std::vector<double> seconds_by_rank(const std::vector<RankJob>& jobs) {
  std::vector<Jobs> made;
  for (const RankJob& job : jobs) made.emplace_back(std::vector<Job>{{Lane::compute, {1, job.use}}});
  std::vector<RankSchedule> ranks;
  std::vector<std::vector<Cost>> costs;
  for (size_t r = 0; r < jobs.size(); r++) {
    ranks.push_back({.schedule = &made[r].schedule, .host = jobs[r].host, .copies = jobs[r].copies});
    costs.push_back(made[r].costs);
  }
  std::vector<double> seconds;
  for (const Simulation& one : simulate_ranks(ranks, costs)) seconds.push_back(one.spans[0].end);
  return seconds;
}

TEST(Simulator, TwoRanksThatStreamTheMemoryOfOneHostTakeTwiceAsLong) {
  EXPECT_EQ(seconds_by_rank({{kMemory}}), std::vector<double>{1});
  EXPECT_EQ(seconds_by_rank({{kMemory}, {kMemory}}), (std::vector<double>{2, 2}));
  EXPECT_EQ(seconds_by_rank({{kMemory, 0}, {kMemory, 1}}), (std::vector<double>{1, 1}));
  EXPECT_EQ(seconds_by_rank({{kMemory, 0, 2}}), std::vector<double>{2});  // one represents both
  EXPECT_EQ(seconds_by_rank({{kMemory, 0, 2}, {kMemory, 0, 2}, {kMemory, 1}}), (std::vector<double>{4, 4, 1}));
}

TEST(Simulator, RanksOfAHostShareItsDiskButHaveTheirOwnCoresAndNetwork) {
  EXPECT_EQ(seconds_by_rank({{kDisk}, {kDisk}, {kMemory}}), (std::vector<double>{2, 2, 1}));
  EXPECT_EQ(seconds_by_rank({{kCores}, {kCores}}), (std::vector<double>{1, 1}));
  EXPECT_EQ(seconds_by_rank({{kNetwork}, {kNetwork, 0, 3}}), (std::vector<double>{1, 1}));
}

TEST(Simulator, LanesOfARankShareItsNetwork) {
  EXPECT_DOUBLE_EQ(run({{Lane::net, {1, kNetwork}}, {Lane::compute, {1, kNetwork}}}).seconds, 2);
}

TEST(Simulator, AStallIsPutDownToWhatWasWaitedFor) {
  const Simulation s =
      run({{Lane::write, {5, kDisk}}, {Lane::compute, {1, kCores}}, {Lane::compute, {2, kCores}, {0}}});
  EXPECT_DOUBLE_EQ(s.seconds, 7);
  ASSERT_EQ(s.stalls.size(), 1u);
  EXPECT_EQ(s.stalls[0].lane, Lane::compute);
  EXPECT_DOUBLE_EQ(s.stalls[0].seconds, 4);
}

TEST(Simulator, OpsInACircleAreABug) {
  EXPECT_THROW(run({{Lane::compute, {1, kCores}, {1}}, {Lane::write, {1, kCores}, {0}}}), Bug);
}

TEST(Simulator, MemoryIsFollowedOpByOp) {
  // Embedding, layer and head with one micro-batch. make_blocks has the numbers: 16 resident bytes per parameter, 101 bytes
  // of output, 701 saved, 31 of workspace.
  const Schedule schedule = training_step(make_blocks(3, false), 1);
  const Simulation s = simulate(schedule, std::vector<Cost>(schedule.ops.size(), Cost{1, kCores}));
  EXPECT_EQ(s.at_peak[MemoryKind::parameters], 4 * 3003);
  EXPECT_EQ(s.at_peak[MemoryKind::gradients], 4 * 3003);
  EXPECT_EQ(s.at_peak[MemoryKind::optimizer], 8 * 3003);
  EXPECT_EQ(s.at_peak[MemoryKind::saved], 2 * 701);
  // In the loss: both outputs and the gradient of the second one. In the layer's backward: the first output and two
  // gradients.
  EXPECT_EQ(s.at_peak[MemoryKind::activations], 3 * 101);
  EXPECT_EQ(s.at_peak[MemoryKind::workspace], 31);
  EXPECT_EQ(s.at_peak[MemoryKind::aside], 0);
  EXPECT_EQ(s.peak_bytes, s.at_peak.total());
  EXPECT_EQ(s.peak_op, find(schedule, ops::loss, 2, 0));
}

TEST(Simulator, OnlyRowsKeptAsideGrowWithTheNumberOfMicroBatches) {
  auto peak = [](bool tied, int32_t micros) {
    const Schedule schedule = training_step(make_blocks(5, tied), micros);
    return simulate(schedule, std::vector<Cost>(schedule.ops.size())).peak_bytes;
  };
  EXPECT_EQ(peak(false, 1), peak(false, 16));
  EXPECT_EQ(peak(true, 16) - peak(true, 1), 15 * 13);
}

TEST(Simulator, AnEvaluationKeepsTwoActivationsAtMost) {
  const Schedule schedule = evaluation_step(make_blocks(6, false), 3);
  const Simulation s = simulate(schedule, std::vector<Cost>(schedule.ops.size(), Cost{1, kCores}));
  EXPECT_EQ(s.at_peak[MemoryKind::activations], 2 * 101);
  EXPECT_EQ(s.at_peak[MemoryKind::saved], 0);
  EXPECT_EQ(s.at_peak[MemoryKind::gradients], 0);
}

TEST(Simulator, TimeLiesBetweenItsBoundsAndMemoryWithinTheCheckersBound) {
  Random random(5);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 200; i++) {
    Schedule schedule = random_schedule(random);
    for (BlockFacts& block : schedule.blocks) block.save_workspace_bytes = pick(random, 0, 500);
    if (i % 2 == 0) spread(schedule, random);
    std::vector<Cost> costs(schedule.ops.size());
    double sum = 0;
    std::array<double, kResources> used{};
    for (Cost& cost : costs) {
      cost = {unit(random), {unit(random), unit(random), unit(random)}};
      sum += cost.seconds;
      for (size_t r = 0; r < kResources; r++) used[r] += cost.seconds * cost.use[r];
    }
    const Simulation s = simulate(schedule, costs);
    EXPECT_LE(s.seconds, sum * (1 + 1e-9));
    for (double seconds : used) EXPECT_GE(s.seconds, seconds * (1 - 1e-9));
    for (size_t op = 0; op < costs.size(); op++) {
      EXPECT_GE(s.spans[op].end - s.spans[op].start, costs[op].seconds * (1 - 1e-9));
      for (OpId after : schedule.ops[op].after) EXPECT_GE(s.spans[op].start, s.spans[after].end);
    }
    const MemoryBound bound = memory_bound(schedule, HappensBefore(schedule));
    EXPECT_LE(s.peak_bytes, bound.bytes);
    EXPECT_LE(s.on_device.total(), memory_bound(schedule, HappensBefore(schedule), Tier::device).bytes);
    EXPECT_EQ(s.on_device.total() > 0, schedule.layout.device && schedule.micros > 0);
    if (schedule.layout.device) continue;
    if (i % 2 == 1 && schedule.placement.empty() && schedule.offloads.empty() && find(schedule, ops::commit) == kNoOp) {
      EXPECT_EQ(s.peak_bytes, bound.bytes);  // one lane uses all memory, so the bound is exact
    }
  }
}

TEST(Costs, FollowFromFactsAndSpeeds) {
  std::vector<BlockFacts> blocks = make_blocks(2, true);
  blocks[1].parameters = 500;
  blocks[1].optimizer_bytes = 4000;
  const Schedule schedule = with_save(training_step(blocks, 2));
  const MachineSpeeds speeds{.flops = 1e6, .memory_bandwidth = 1e3, .disk_read = 1e3, .disk_write = 1e2,
                             .op_overhead_s = 0.5, .commit_s = 7, .cores = 2};
  const auto costs = predict_costs(schedule, speeds);
  auto seconds = [&](OpKind kind, BlockId block = kNoBlock, MicroId micro = kNoMicro) {
    return costs[find(schedule, kind, block, micro)].seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(ops::count_targets), 0.5);
  EXPECT_DOUBLE_EQ(seconds(ops::forward, 0, 0), 2 + 3 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(ops::backward, 0, 1), 4 + 5 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(ops::loss, 1, 0), 6 + 8 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(ops::embedding_gradient, 0), 3 * 2 * 13 / 1e3 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(ops::gradient_norm, 1), 2 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(ops::optimizer_step, 1), 16 + 0.5);  // 2000 bytes four times, and 4000 bytes twice
  EXPECT_DOUBLE_EQ(seconds(ops::save, 1), 60 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(ops::commit), 7.5);
  const Cost& save = costs[find(schedule, ops::save, 1)];
  EXPECT_DOUBLE_EQ(save.use[static_cast<size_t>(Resource::disk)], 60 / 60.5);
  EXPECT_DOUBLE_EQ(save.use[static_cast<size_t>(Resource::memory)], 12 / 60.5);
  EXPECT_DOUBLE_EQ(save.use[static_cast<size_t>(Resource::cores)], 12 / 60.5);  // all computing threads wait for one
}

TEST(Costs, ASaveHidesBehindComputingWhenTheDiskIsFastEnough) {
  const auto blocks = make_blocks(8, true);
  const Schedule plain = training_step(blocks, 4), saving = with_save(plain);
  MachineSpeeds speeds{.flops = 1e9, .memory_bandwidth = 1e9, .disk_read = 1e9, .disk_write = 1e7,
                       .op_overhead_s = 1e-5, .commit_s = 0, .cores = 2};
  const double alone = simulate(plain, predict_costs(plain, speeds)).seconds;
  const double hidden = simulate(saving, predict_costs(saving, speeds)).seconds;
  EXPECT_GE(hidden, alone);
  EXPECT_LT(hidden, alone * 1.01);
  speeds.disk_write = 1e4;  // 96 kB take nearly ten seconds
  const Simulation slow = simulate(saving, predict_costs(saving, speeds));
  EXPECT_GT(slow.seconds, 9);
  EXPECT_TRUE(std::any_of(slow.stalls.begin(), slow.stalls.end(), [](const Stall& stall) {
    return stall.lane == Lane::compute && stall.waited_for == ops::save && stall.seconds > 8;
  }));
}

}  // namespace
}  // namespace megalith

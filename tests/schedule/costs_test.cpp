#include "schedule/predict/costs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/passes/pipeline.h"
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
  const auto bytes = 28.0 * static_cast<double>(blocks[1].parameters);  // 16 are read, 12 written
  EXPECT_DOUBLE_EQ(cost_of(ops::load_updated).seconds, bytes / 4e7);
  speeds.load_updated = {.wait_s = 0.003, .bytes_per_s = 1e7};
  speeds.load_updated_scarce = {.wait_s = 0.002, .bytes_per_s = 5e6};
  EXPECT_DOUBLE_EQ(cost_of(ops::load_updated).seconds, 0.002 + bytes / 5e6);
  blocks[1].streams_amply = true;
  EXPECT_DOUBLE_EQ(cost_of(ops::load_updated).seconds, 0.003 + bytes / 1e7);
}

// With ample staging, four cores share the work of the checksums. The kernel's part runs on one core, and all wait for it.
TEST_F(StreamCosts, ALaneTakesFromAllCoresWhatItDoesItself) {
  const Cost alone = cost_of(ops::load_updated);
  blocks[1].streams_amply = true;
  const Cost shared = cost_of(ops::load_updated);
  const double bytes = 28.0 * static_cast<double>(blocks[1].parameters);
  EXPECT_NEAR(alone.use[kCores] * alone.seconds, bytes * 1e-9, bytes * 1e-11);
  EXPECT_NEAR(shared.use[kCores] * shared.seconds, bytes * (0.25e-9 + 0.75e-9 / 4), bytes * 1e-11);
}

// Round speeds. A call takes 1 ms on the tensor axis and 2 ms on the context axis. These transfer 1 and 0.1 MB per second.
struct ExchangeCosts : testing::Test {
  ExchangeCosts() {
    speeds.links[size_t(Axis::tensor)] = {1e-3, 1e6};
    speeds.links[size_t(Axis::context)] = {2e-3, 1e5};
    speeds.links[size_t(Axis::data)] = {3e-3, 1e6};
    speeds.links[size_t(Axis::pipeline)] = {4e-3, 1e6};
  }
  Cost cost_of(const Schedule& step, OpKind kind, BlockId block, MicroId micro = kNoMicro) const {
    return predict_costs(step, speeds)[static_cast<size_t>(find(step, kind, block, micro))];
  }
  std::vector<BlockFacts> blocks = make_blocks(4, true);
  MachineSpeeds speeds{.flops = 1e9, .memory_bandwidth = 1e6, .op_overhead_s = 0, .cores = 2};
};

TEST_F(ExchangeCosts, BlocksPayForEachCallAndEachByte) {
  blocks[1].forward.exchanges[Axis::tensor] = {3, 6000};
  blocks[1].forward.exchanges[Axis::context] = {1, 500};
  const Schedule step = training_step(blocks, 1);
  const Cost cost = cost_of(step, ops::forward, 1, 0);
  const double work = 2e-3 + 3e-3, calls = 3e-3 + 2e-3, transfer = 6e-3 + 5e-3;
  EXPECT_DOUBLE_EQ(cost.seconds, work + calls + transfer);
  EXPECT_DOUBLE_EQ(cost.use[size_t(Resource::network)], transfer / cost.seconds);
  EXPECT_DOUBLE_EQ(cost.use[kCores], (work + (calls + transfer) / 2) / cost.seconds);  // one of two cores exchanges
  // The passes over memory, and reading and writing the exchanged bytes, which cannot take longer than the exchange.
  EXPECT_DOUBLE_EQ(cost.use[size_t(Resource::memory)], (3e-3 + std::min(transfer, 2 * 6500 / 1e6)) / cost.seconds);
  EXPECT_DOUBLE_EQ(cost_of(step, ops::forward, 2, 0).seconds, work);
  EXPECT_DOUBLE_EQ(cost_of(step, ops::backward, 1, 0).seconds, 4e-3 + 5e-3);
}

TEST_F(ExchangeCosts, TheHeadsLossExchangesForwardAndBack) {
  blocks[3].forward.exchanges[Axis::tensor] = {2, 1000};
  blocks[3].backward.exchanges[Axis::tensor] = {1, 4000};
  const double alone = 6e-3 + 8e-3;
  EXPECT_DOUBLE_EQ(cost_of(training_step(blocks, 1), ops::loss, 3, 0).seconds, alone + 3e-3 + 5e-3);
}

TEST_F(ExchangeCosts, ARecomputationLeavesOutWhatItDoesNotRepeat) {
  blocks[1].forward.exchanges[Axis::tensor] = {4, 7000};
  blocks[1].attention.exchanges[Axis::tensor] = {1, 1000};
  blocks[1].output.exchanges[Axis::tensor] = {1, 2500};
  const auto seconds = [&](Keep keep) {
    const Schedule step = training_step(blocks, 1, ComputeOrder::by_micro, {Keep::all, keep, Keep::all, Keep::all});
    return cost_of(step, ops::recompute, 1, 0).seconds;
  };
  // Forward takes 2 ms for products and 3 ms for memory. The output takes 0.5 and 0.7 ms of these, attention 0.7 and 1.1 ms.
  EXPECT_DOUBLE_EQ(seconds(Keep::input), 1.5e-3 + 2.3e-3 + 3e-3 + 4.5e-3);
  EXPECT_DOUBLE_EQ(seconds(Keep::attention), 0.8e-3 + 1.2e-3 + 2e-3 + 3.5e-3);
}

TEST_F(ExchangeCosts, RanksPayForGradientsAndSlices) {
  RankLayout layout{Mesh({.data = 4}), {}};
  const auto step = [&] { return training_step(blocks, 1, ComputeOrder::by_block, {}, layout); };
  // Each rank sends its quarter of 1001 elements to three others: once to add them up, and once to distribute the sums.
  const double one_way = 4 * 1001 / 4 * 3 / 1e6;
  const Cost all_reduce = cost_of(step(), ops::reduce_gradient, 1);
  EXPECT_DOUBLE_EQ(all_reduce.seconds, 3e-3 + 2 * one_way);
  EXPECT_DOUBLE_EQ(all_reduce.use[size_t(Resource::network)], 2 * one_way / all_reduce.seconds);
  EXPECT_DOUBLE_EQ(all_reduce.use[kCores], 2 * one_way / all_reduce.seconds);
  EXPECT_DOUBLE_EQ(cost_of(step(), ops::all_reduce_totals, kNoBlock).seconds, 4e-3);  // the slowest axis
  layout.mesh = Mesh({.data = 4, .zero = 3});
  EXPECT_DOUBLE_EQ(cost_of(step(), ops::reduce_gradient, 1).seconds, 3e-3 + one_way);
  EXPECT_DOUBLE_EQ(cost_of(with_residency(step(), {}, 1), ops::gather_parameters, 1).seconds, 3e-3 + one_way);
  layout.mesh = Mesh({.tensor = 2});
  EXPECT_DOUBLE_EQ(cost_of(step(), ops::reduce_gradient, 1).seconds, 1e-3);
}

TEST_F(ExchangeCosts, StagesPayForMessages) {
  const RankLayout first{Mesh({.pipeline = 2}, 0), {{0, 0, 1, 1}}}, last{Mesh({.pipeline = 2}, 1), {{0, 0, 1, 1}}};
  blocks[0].compute_copy_bytes = 2000;
  const Schedule sends = pipeline_step(blocks, 1, PipelineOrder::gpipe, {}, first);
  const Schedule receives = pipeline_step(blocks, 1, PipelineOrder::gpipe, {}, last);
  const double activation = 4e-3 + 101 / 1e6;
  EXPECT_DOUBLE_EQ(cost_of(sends, ops::send_activation, 1, 0).seconds, activation);
  EXPECT_DOUBLE_EQ(cost_of(receives, ops::receive_activation, 1, 0).seconds, activation);
  EXPECT_DOUBLE_EQ(cost_of(receives, ops::send_output_gradient, 1, 0).seconds, activation);
  EXPECT_DOUBLE_EQ(cost_of(sends, ops::receive_output_gradient, 1, 0).seconds, activation);
  EXPECT_DOUBLE_EQ(cost_of(sends, ops::sync_tied_table, 0).seconds, 4e-3 + 2000 / 1e6);
  EXPECT_DOUBLE_EQ(cost_of(receives, ops::sync_tied_gradient, 0).seconds, 4e-3 + 4000 / 1e6);
}

// A rank alone reaches half of the host's memory bandwidth.
TEST_F(ExchangeCosts, UseOfMemoryIsOfTheHosts) {
  speeds.host_bandwidth = 2e6;
  speeds.host_ranks = 4;
  const Cost norm = cost_of(training_step(blocks, 1), ops::gradient_norm, 1);
  EXPECT_DOUBLE_EQ(norm.seconds, 4004 / 1e6);
  EXPECT_DOUBLE_EQ(norm.use[size_t(Resource::memory)], 0.5);
  // Exchanges were measured with all four ranks at the same time. Together they use at most the whole memory bandwidth.
  const RankLayout layout{Mesh({.data = 4}), {}};
  const Schedule step = training_step(blocks, 1, ComputeOrder::by_micro, {}, layout);
  const Cost all_reduce = cost_of(step, ops::reduce_gradient, 1);
  EXPECT_DOUBLE_EQ(all_reduce.use[size_t(Resource::memory)], (all_reduce.seconds - 3e-3) / 4 / all_reduce.seconds);
}

}  // namespace
}  // namespace megalith

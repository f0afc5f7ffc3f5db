// Blocks computed on a (simulated) device, in a window of its memory. Every number equals that of a run in memory, and the
// device never uses more memory than it has.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "engine/elsewhere.h"
#include "engine/device.h"
#include "engine/simulated_device.h"
#include "memory/allocator.h"
#include "model/tensor_ops.h"
#include "schedule/check/checker.h"
#include "schedule/predict/memory.h"
#include "schedule/passes/input_offload.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

using namespace testing_support;

constexpr Placement M = Placement::in_memory, O = Placement::optimizer_on_disk, A = Placement::on_disk;
constexpr double kFast = 50e9;  // bytes per second
constexpr int64_t kMiB = int64_t{1} << 20;

class OnDevice : public ::testing::Test {
 protected:
  OnDevice() : folder_(std::filesystem::temp_directory_path() / fmt::format("megalith-device-test-{}", ::getpid())) {
    install_allocator();
    layout_.device = true;
  }
  ~OnDevice() override { std::filesystem::remove_all(folder_); }

  // On the device, or without one.
  std::unique_ptr<Engine> engine_with(const ModelShape& shape, const TrainSettings& settings,
                                      std::vector<Placement> placement, Device* device) {
    at::set_num_threads(1);
    const StorageOptions residence{.placement = std::move(placement), .spill = folder_, .device = device};
    auto engine = std::make_unique<Engine>(shape, settings, 3, true, residence);
    engine->state().initialise(3);
    return engine;
  }

  std::filesystem::path folder_;
  RankLayout layout_;
};

struct Mode {
  const char* name;
  std::vector<Placement> placement;
  ComputeOrder order;
  int32_t window, ahead;
  int every;  // layers in a chain that is recomputed; 0: none
  bool offloads = false;
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all{
      {"window 1", {}, ComputeOrder::by_block, 1, 0, 0},
      {"window 1, by micro-batch, full recompute", {}, ComputeOrder::by_micro, 1, 0, 1},
      {"everything in the window", {}, ComputeOrder::by_micro, 16, 0, 0},
      {"chains, parked in the host's memory", {}, ComputeOrder::by_block, 2, 0, 2, true},
      {"all on disk, window 1", {A, A, A, A, A}, ComputeOrder::by_block, 1, 0, 0},
      {"all on disk, far ahead, parked", {A, A, A, A, A}, ComputeOrder::by_block, 1, 3, 1, true},
      {"all on disk, by micro-batch", {A, A, A, A, A}, ComputeOrder::by_micro, 2, 1, 0},
      {"moments on disk", {O, O, O, O, O}, ComputeOrder::by_block, 2, 1, 0},
      {"mixed", {O, M, A, O, A}, ComputeOrder::by_block, 2, 1, 1},
  };
  return all;
}

Schedule step_of(const std::vector<BlockFacts>& blocks, int32_t micros, const Mode& mode, const RankLayout& layout) {
  const auto keep = mode.every > 0 ? recompute_every(blocks, mode.every) : std::vector<Keep>();
  std::vector<bool> offloads(keep.size());
  for (size_t b = 0; b < keep.size(); b++) offloads[b] = mode.offloads && keep[b] == Keep::input;
  return with_residency(with_input_offload(training_step(blocks, micros, mode.order, keep, layout), offloads), mode.placement,
                        mode.window, mode.ahead);
}

TEST_F(OnDevice, EveryModeGivesTheLossesAndTheStateOfARunInMemory) {
  for (const ElsewhereCase& c : elsewhere_cases()) {
    const ModelShape shape = c.shape();
    const TrainSettings settings = c.settings();
    const Batch batch = random_batch(shape, 6, 16);
    for (int32_t micros : {1, 3}) {
      const auto blocks = facts_of(shape, batch, micros, c.precision);
      auto reference = engine_with(shape, settings, {}, nullptr);
      const auto wanted = memorise(*reference, batch, training_step(blocks, micros), 5, 0.01);
      const Tensors wanted_state = all_state(*reference, blocks, {}, {});
      for (const Mode& mode : modes()) {
        SCOPED_TRACE(
            fmt::format("{} {} {}, {} micro-batches", c.family->name, mode.name, static_cast<int>(c.optimizer), micros));
        const Schedule step = step_of(blocks, micros, mode, layout_);
        const auto problems = check(step);
        ASSERT_TRUE(problems.empty()) << problems.front().reason;
        const std::shared_ptr<Device> device = simulated_device(Bytes(64 * kMiB), kFast);
        auto engine = engine_with(shape, settings, mode.placement, device.get());
        EXPECT_EQ(memorise(*engine, batch, step, 5, 0.01), wanted);
        EXPECT_EQ(allocated_memory(Tier::device).live, 0) << "nothing rests on the device";
        const Tensors state = all_state(*engine, blocks, mode.placement, layout_);
        ASSERT_EQ(state.size(), wanted_state.size());
        for (const auto& [name, values] : wanted_state) EXPECT_EQ(state.at(name), values) << name;
      }
    }
  }
}

// Blocks so large that their bytes dominate.
ModelShape wide() {
  ModelShape shape = three_layers(&gpt2_family);
  shape.layers = 5;
  shape.hidden = 512;
  shape.ffn = 2048;
  shape.context = 128;
  return shape;
}

TEST_F(OnDevice, ItsMemoryIsWhatTheScheduleSaysAndNoMore) {
  const ModelShape shape = wide();
  const Batch batch = random_batch(shape, 4, 128);
  const auto blocks = facts_of(shape, batch, 2);
  const std::vector<Placement> placement(blocks.size(), A);
  int64_t before = 0;
  for (const Mode& mode : {Mode{"window 1, recomputed and parked", placement, ComputeOrder::by_block, 1, 1, 1, true},
                           Mode{"window 1", placement, ComputeOrder::by_block, 1, 1, 0},
                           Mode{"window 4", placement, ComputeOrder::by_block, 4, 1, 0}}) {
    SCOPED_TRACE(mode.name);
    const Schedule step = step_of(blocks, 2, mode, layout_);
    const int64_t bound = memory_bound(step, HappensBefore(step), Tier::device).bytes;
    const int64_t room = bound + bound / 50 + kMiB;  // alignment, and tables that no schedule counts
    reset_memory_peak();
    {
      const std::shared_ptr<Device> device = simulated_device(Bytes(room), kFast);
      auto engine = engine_with(shape, settings_with(), mode.placement, device.get());
      memorise(*engine, batch, step, 3, 0.01);
    }
    const int64_t peak = allocated_memory(Tier::device).peak;
    EXPECT_LE(peak, room);
    EXPECT_GT(static_cast<double>(peak), 0.6 * static_cast<double>(bound)) << "the bound is near what happens";
    EXPECT_GT(peak, before);
    before = peak;
    // The limit is hard: an allocation beyond it fails.
    const std::shared_ptr<Device> small = simulated_device(Bytes(bound / 2), kFast);
    auto engine = engine_with(shape, settings_with(), mode.placement, small.get());
    EXPECT_THROW(engine->run(step, {&batch, 0, 0.01, nullptr}), BudgetExceeded);
  }
}

TEST_F(OnDevice, CopiesTakeTheTimeThatTheirBandwidthSays) {
  const std::shared_ptr<Device> device = simulated_device(Bytes(64 * kMiB), 100e6);
  const at::Tensor here = tensor::empty({4 * kMiB}, at::kFloat), there = device->empty({4 * kMiB}, at::kFloat);
  const auto began = std::chrono::steady_clock::now();
  device->upload(here, there);
  device->download(there, here);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took.count(), 2 * 16.0 * 1.048576 / 100);
  EXPECT_THROW(device->empty({16 * kMiB}, at::kFloat), BudgetExceeded);
}

TEST_F(OnDevice, ValidationAndGenerationInBetweenChangeNothingAndSeeTheUpdatedModel) {
  const ModelShape shape = three_layers(&gpt2_family);
  const Batch batch = random_batch(shape, 4, 16), other = random_batch(shape, 4, 16, 9);
  const auto blocks = facts_of(shape, batch, 2);
  for (const std::vector<Placement>& placement : {std::vector<Placement>{}, std::vector<Placement>{A, A, O, A, M}}) {
    const std::shared_ptr<Device> device = simulated_device(Bytes(64 * kMiB), kFast);
    auto memory = engine_with(shape, settings_with(), {}, nullptr),
         there = engine_with(shape, settings_with(), placement, device.get());
    const Schedule plain = training_step(blocks, 2);
    const Schedule step = step_of(blocks, 2, {"", placement, ComputeOrder::by_block, 2, 1, 0}, layout_);
    const Schedule evaluation =
        with_residency(evaluation_step(blocks, 2, ComputeOrder::by_block, layout_), placement, 1, 1);
    ASSERT_TRUE(check(evaluation).empty());
    expect_evaluation_to_change_nothing({*memory, plain}, evaluation_step(blocks, 2), {*there, step}, evaluation, batch,
                                        other);
  }
}

TEST_F(OnDevice, ASkippedStepLeavesNothingPending) {
  const ModelShape shape = three_layers(&gpt2_family);
  const Batch batch = random_batch(shape, 2, 16);
  const auto blocks = facts_of(shape, batch, 1, Precision::fp16);
  TrainSettings settings = settings_with();
  settings.precision = Precision::fp16;
  const std::vector<Placement> placement{A, O, M, O, A};
  const std::shared_ptr<Device> device = simulated_device(Bytes(64 * kMiB), kFast);
  auto memory = engine_with(shape, settings, {}, nullptr), there = engine_with(shape, settings, placement, device.get());
  const Schedule step = step_of(blocks, 1, {"", placement, ComputeOrder::by_block, 2, 1, 0}, layout_);
  const Schedule plain = training_step(blocks, 1);
  expect_the_same_steps_skipped({*memory, plain}, {*there, step}, batch);
}

TEST_F(OnDevice, ASaveWritesTheStateThatTheStepBeforeLeft) {
  const ModelShape shape = three_layers(&llama_family, false);
  const Batch batch = random_batch(shape, 4, 16);
  const auto blocks = facts_of(shape, batch, 2);
  for (const std::vector<Placement>& placement : {std::vector<Placement>{}, std::vector<Placement>{A, A, M, O, A}}) {
    const std::shared_ptr<Device> device = simulated_device(Bytes(64 * kMiB), kFast);
    auto memory = engine_with(shape, settings_with(), {}, nullptr),
         there = engine_with(shape, settings_with(), placement, device.get());
    const Schedule plain = training_step(blocks, 2);
    const Schedule step = step_of(blocks, 2, {"", placement, ComputeOrder::by_block, 2, 1, 1, true}, layout_);
    expect_the_same_saves({*memory, plain}, save_only(blocks), {*there, step},
                          with_save(apply_pending_only(blocks, placement, layout_)), batch);
  }
}

}  // namespace
}  // namespace megalith

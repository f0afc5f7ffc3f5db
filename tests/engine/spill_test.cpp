// State on disk and recomputation change no number: every number equals that of a run in memory.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "engine/elsewhere.h"
#include "memory/allocator.h"
#include "schedule/check/checker.h"
#include "schedule/predict/memory.h"
#include "schedule/passes/input_offload.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

using namespace testing_support;

class Spill : public ::testing::Test {
 protected:
  Spill() : folder_(std::filesystem::temp_directory_path() / fmt::format("megalith-spill-test-{}", ::getpid())) {}
  ~Spill() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Engine> engine_with(const ModelShape& shape, const TrainSettings& settings,
                                      std::vector<Placement> placement, const Schedule& step = {}) {
    at::set_num_threads(1);
    auto engine = std::make_unique<Engine>(shape, settings, 3, true,
                                           StorageOptions{std::move(placement), folder_, offloaded_input_bytes(step), step.micros});
    engine->state().initialise(3);
    return engine;
  }

  std::filesystem::path folder_;
};

constexpr Placement M = Placement::in_memory, O = Placement::optimizer_on_disk, A = Placement::on_disk;

constexpr int kSelective = -1;

struct Mode {
  const char* name;
  std::vector<Placement> placement;
  ComputeOrder order;
  int32_t window;
  int every;  // layers in a chain; 0: no recomputation; kSelective: of the feed-forward halves
  bool offloads = false;  // the inputs that layers keep
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all{
      {"all away, window 1, full recompute", {A, A, A, A, A}, ComputeOrder::by_block, 1, 1},
      {"all away, window 2", {A, A, A, A, A}, ComputeOrder::by_block, 2, 0},
      {"all away by micro-batch, window 3, chains", {A, A, A, A, A}, ComputeOrder::by_micro, 3, 2},
      {"moments away", {O, O, O, O, O}, ComputeOrder::by_block, 1, 0},
      {"mixed", {O, M, A, O, M}, ComputeOrder::by_block, 2, 1},
      {"in memory, full recompute", {M, M, M, M, M}, ComputeOrder::by_micro, 1, 1},
      {"in memory by block, chains", {M, M, M, M, M}, ComputeOrder::by_block, 1, 3},
      {"in memory, selective", {M, M, M, M, M}, ComputeOrder::by_micro, 1, kSelective},
      {"mixed, selective", {O, M, A, O, A}, ComputeOrder::by_block, 2, kSelective},
      {"all away and parked, window 1", {A, A, A, A, A}, ComputeOrder::by_block, 1, 1, true},
      {"in memory but parked", {M, M, M, M, M}, ComputeOrder::by_micro, 1, 1, true},
      {"mixed and parked, chains", {O, M, A, O, A}, ComputeOrder::by_block, 2, 2, true},
  };
  return all;
}

TEST_F(Spill, EveryModeGivesTheLossesAndTheStateOfARunInMemory) {
  for (const ElsewhereCase& c : elsewhere_cases()) {
    const ModelShape shape = c.shape();
    const TrainSettings settings = c.settings();
    const Batch batch = random_batch(shape, 6, 16);
    const auto blocks = facts_of(shape, batch, 3, c.precision);

    auto reference = engine_with(shape, settings, {});
    const auto wanted = memorise(*reference, batch, training_step(blocks, 3), 6, 0.01);
    const Tensors wanted_state = all_state(*reference, blocks, {});

    for (const Mode& mode : modes()) {
      SCOPED_TRACE(fmt::format("{} {} {}", c.family->name, mode.name, static_cast<int>(c.optimizer)));
      const auto keep = mode.every == kSelective ? recompute_feed_forward(blocks)
                        : mode.every > 0         ? recompute_every(blocks, mode.every)
                                                 : std::vector<Keep>();
      std::vector<bool> offloads(keep.size());
      for (size_t b = 0; b < keep.size(); b++) offloads[b] = mode.offloads && keep[b] == Keep::input;
      const Schedule step =
          with_residency(with_input_offload(training_step(blocks, 3, mode.order, keep), offloads), mode.placement, mode.window);
      const auto problems = check(step);
      ASSERT_TRUE(problems.empty()) << problems.front().reason;
      auto engine = engine_with(shape, settings, mode.placement, step);
      EXPECT_EQ(memorise(*engine, batch, step, 6, 0.01), wanted);
      const Tensors state = all_state(*engine, blocks, mode.placement);
      ASSERT_EQ(state.size(), wanted_state.size());
      for (const auto& [name, values] : wanted_state) EXPECT_EQ(state.at(name), values) << name;
    }
  }
}

TEST_F(Spill, InputsThatParkLeaveMemory) {
  install_allocator();
  ModelShape shape = three_layers(&gpt2_family);
  shape.layers = 6;
  shape.hidden = 512;
  shape.context = 256;
  constexpr int32_t kMicros = 8;
  const Batch batch = random_batch(shape, kMicros, 256);
  auto blocks = facts_of(shape, batch, kMicros, Precision::fp32);
  for (BlockFacts& block : blocks) block.input_offload_bytes = staging_bytes({{{256 * 512}}}, Staging::scarce);
  const auto keep = recompute_all(blocks);
  std::vector<bool> offloads(blocks.size());
  for (size_t b = 0; b < keep.size(); b++) offloads[b] = keep[b] == Keep::input;
  struct Peak {
    int64_t measured, bound;
    double loss;
  };
  const auto peak_of = [&](const std::vector<bool>& parking) {
    const Schedule step = with_input_offload(training_step(blocks, kMicros, ComputeOrder::by_block, keep), parking);
    const int64_t before = allocated_memory().live;
    auto engine = engine_with(shape, settings_with(), {}, step);
    for (size_t b = 0; b < blocks.size(); b++)
      blocks[b].optimizer_bytes = engine->state().optimizer_bytes(static_cast<BlockId>(b));
    engine->run(step, {&batch, 0, 0.01, nullptr});
    reset_memory_peak();
    const double loss = engine->run(step, {&batch, 1, 0.01, nullptr}).loss;
    Schedule counted = step;
    counted.blocks = blocks;
    return Peak{allocated_memory().peak - before, memory_bound(counted, HappensBefore(counted)).bytes, loss};
  };
  const Peak stays = peak_of({}), goes = peak_of(offloads);
  EXPECT_EQ(goes.loss, stays.loss);
  constexpr int64_t kMiB = int64_t{1} << 20;  // 6 layers, 8 micro-batches of half a MiB each
  EXPECT_LT(goes.measured, stays.measured - 12 * kMiB);
  EXPECT_LE(static_cast<double>(goes.measured), 1.02 * static_cast<double>(goes.bound));
  EXPECT_LT(goes.bound, stays.bound - 12 * kMiB);
}

TEST_F(Spill, ValidationAndGenerationInBetweenChangeNothingAndSeeTheUpdatedModel) {
  const ModelShape shape = three_layers(&gpt2_family);
  const Batch batch = random_batch(shape, 4, 16);
  const auto blocks = facts_of(shape, batch, 2);
  const std::vector<Placement> placement{A, A, O, A, M};
  auto memory = engine_with(shape, settings_with(), {}), disk = engine_with(shape, settings_with(), placement);
  const Schedule plain = training_step(blocks, 2),
                 step = with_residency(training_step(blocks, 2, ComputeOrder::by_block), placement, 2);
  expect_evaluation_to_change_nothing({*memory, plain}, evaluation_step(blocks, 2), {*disk, step},
                                      with_residency(evaluation_step(blocks, 2, ComputeOrder::by_block), placement, 1),
                                      batch, random_batch(shape, 4, 16, 9));
}

TEST_F(Spill, ASkippedStepLeavesNothingPending) {
  const ModelShape shape = three_layers(&gpt2_family);
  const Batch batch = random_batch(shape, 2, 16);
  const auto blocks = facts_of(shape, batch, 1, Precision::fp16);
  TrainSettings settings = settings_with();
  settings.precision = Precision::fp16;
  const std::vector<Placement> placement{A, O, A, O, A};
  auto memory = engine_with(shape, settings, {}), disk = engine_with(shape, settings, placement);
  const Schedule plain = training_step(blocks, 1), step = with_residency(plain, placement, 2);
  expect_the_same_steps_skipped({*memory, plain}, {*disk, step}, batch);
}

TEST_F(Spill, ASaveWritesTheStateThatTheStepBeforeLeft) {
  const ModelShape shape = three_layers(&llama_family, false);
  const Batch batch = random_batch(shape, 4, 16);
  const auto blocks = facts_of(shape, batch, 2);
  const std::vector<Placement> placement{A, A, M, O, A};
  auto memory = engine_with(shape, settings_with(), {}), disk = engine_with(shape, settings_with(), placement);
  const Schedule plain = training_step(blocks, 2);
  const Schedule step =
      with_residency(training_step(blocks, 2, ComputeOrder::by_block, recompute_all(blocks)), placement, 2);
  expect_the_same_saves({*memory, plain}, save_only(blocks), {*disk, step}, with_save(apply_pending_only(blocks, placement)), batch);
}

}  // namespace
}  // namespace megalith

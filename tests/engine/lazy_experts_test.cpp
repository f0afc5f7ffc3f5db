// Experts on disk that no token chooses stay there. They are neither read nor updated until they are needed. All numbers are
// the same as with all experts in memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/elsewhere.h"
#include "schedule/check/checker.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/op_type.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

using namespace testing_support;

constexpr Placement M = Placement::in_memory, O = Placement::optimizer_on_disk, A = Placement::on_disk;
constexpr int kSteps = 50;
constexpr int32_t kMicros = 2;
constexpr int64_t kExperts = 32;

struct Case {
  const char* name;
  std::vector<Placement> placement;
  OptimizerKind optimizer = OptimizerKind::adamw;
  Precision precision = Precision::fp32;
  Router router = Router::softmax;
  bool recompute = false;
  ComputeOrder order = ComputeOrder::by_block;
  Packing packing = Packing::fp32;
};

std::ostream& operator<<(std::ostream& out, const Case& it) { return out << it.name; }

std::vector<Case> cases() {
  using enum Router;
  const auto adamw = OptimizerKind::adamw;
  return {{"Away", {A, A, A, A, A}},
          {"AwayNoisyRecompute", {A, A, A, A, A}, adamw, Precision::fp32, noisy, true},
          {"AwayBf16Recompute", {A, A, A, A, A}, adamw, Precision::bf16, sigmoid, true},
          {"AwayByMicroBatch", {A, A, A, A, A}, adamw, Precision::fp32, noisy, true, ComputeOrder::by_micro},
          {"MomentsAway", {O, O, O, O, O}},
          {"MomentsAwayBf16Noisy", {O, O, O, O, O}, adamw, Precision::bf16, noisy},
          {"MixedLion", {O, A, O, M, A}, OptimizerKind::lion, Precision::fp32, switch_},
          {"MixedSgdFp16", {M, A, A, O, M}, OptimizerKind::sgd, Precision::fp16, softmax, true},
          {"AwayInt8", {A, A, A, A, A}, adamw, Precision::fp32, softmax, false, ComputeOrder::by_block, Packing::int8},
          {"MixedHalfTheBytes", {A, O, A, O, O}, adamw, Precision::bf16, gshard, true, ComputeOrder::by_block,
           Packing::bf16}};
}

// Many experts, few tokens.
ModelShape many_experts(Router router) {
  ModelShape shape = tiny_experts(router);
  shape.layers = 3;
  shape.tied = false;
  shape.experts.count = kExperts;
  shape.experts.ffn = 32;  // whole pages of the disk
  shape.experts.top_k = router == Router::switch_ ? 1 : 2;
  shape.experts.aux_loss = 0.01;
  return shape;
}

// Warm-up, then decay.
double rate(int step) { return 0.003 * std::min(1.0, (step + 1) / 8.0) * (1 - step / 100.0); }

class LazyExperts : public testing::TestWithParam<Case> {
 protected:
  LazyExperts() : folder_(std::filesystem::temp_directory_path() / fmt::format("megalith-lazy-test-{}", ::getpid())) {
    settings_ = settings_with(GetParam().optimizer);
    settings_.precision = GetParam().precision;
    settings_.optimizer_state = GetParam().packing;
    settings_.clip = 0.5;
    settings_.weight_decay = 0.1;
    settings_.momentum = 0.9;
  }
  ~LazyExperts() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Engine> engine(std::vector<Placement> placement) {
    at::set_num_threads(1);
    auto engine = std::make_unique<Engine>(shape_, settings_, 3, true, StorageOptions{std::move(placement), folder_});
    engine->state().initialise(3);
    if (settings_.precision == Precision::fp16) {  // the first steps overflow and are skipped
      StepCounters counters = engine->counters();
      counters.loss_scale.scale = 16777216;
      engine->restore(counters);
    }
    return engine;
  }
  Batch batch(int step) const { return random_batch(shape_, 2, 3, static_cast<uint64_t>(step)); }
  std::vector<BlockFacts> facts() const { return facts_of(shape_, batch(0), kMicros, settings_.precision); }
  Schedule plain() const { return training_step(facts(), kMicros); }
  Schedule spilled() const {
    const auto keep = GetParam().recompute ? recompute_all(facts()) : std::vector<Keep>();
    return with_residency(training_step(facts(), kMicros, GetParam().order, keep), GetParam().placement, 2);
  }

  const ModelShape shape_ = many_experts(GetParam().router);
  TrainSettings settings_;
  std::filesystem::path folder_;
};

// Returns the state as bytes, so that packed state can be compared too.
Tensors bytes_of_state(Engine& engine, const std::vector<BlockFacts>& blocks, const std::vector<Placement>& placement) {
  engine.run(apply_pending_only(blocks, placement), {nullptr, 0, 0, nullptr});
  Tensors out;
  const auto add = [&](const TensorPiece& piece) {
    std::vector<float>& whole = out[piece.name];
    for (std::byte byte : piece.bytes()) whole.push_back(static_cast<float>(byte));
  };
  for (BlockId b = 0; b < static_cast<BlockId>(engine.state().blocks()); b++) {
    engine.state().read_parameters(b, Lane::compute, add);
    engine.state().read_optimizer(b, Lane::compute, add);
  }
  return out;
}

TEST_P(LazyExperts, GiveTheLossesAndTheStateOfARunInMemory) {
  const Schedule step = spilled();
  const auto problems = check(step);
  ASSERT_TRUE(problems.empty()) << problems.front().reason;
  auto memory = engine({}), disk = engine(GetParam().placement);
  DiskUse moved;
  std::vector<std::vector<int>> idle(3, std::vector<int>(kExperts)), longest = idle;  // steps, by layer and expert
  int skipped = 0;
  for (int i = 0; i < kSteps; i++) {
    const Batch here = batch(i);
    const StepOutcome a = memory->run(plain(), {&here, i, rate(i), nullptr});
    const StepOutcome b = disk->run(step, {&here, i, rate(i), nullptr});
    ASSERT_EQ(a.loss, b.loss) << i;
    moved = {moved.read + b.disk.read, moved.written + b.disk.written, moved.experts_called + b.disk.experts_called};
    ASSERT_EQ(a.skipped, b.skipped) << i;
    if (!a.skipped) {
      ASSERT_EQ(a.gradient_norm, b.gradient_norm) << i;
    }
    skipped += a.skipped;
    for (size_t layer = 0; layer < 3; layer++)
      for (size_t e = 0; e < kExperts; e++) {
        int& here_idle = idle[layer][e];
        here_idle = a.routing[layer].load[e] == 0 ? here_idle + 1 : 0;
        longest[layer][e] = std::max(longest[layer][e], here_idle);
      }
  }
  EXPECT_EQ(skipped > 0, settings_.precision == Precision::fp16);
  int starved = 0;
  for (const auto& layer : longest) starved += static_cast<int>(std::ranges::count_if(layer, [](int n) { return n >= 10; }));
  EXPECT_GT(starved, 5) << "several experts wait for many steps";
  // The traffic of a step that loads all experts.
  Schedule counted = step;
  for (size_t b = 0; b < counted.blocks.size(); b++)
    counted.blocks[b].optimizer_bytes = disk->state().optimizer_bytes(static_cast<BlockId>(b));
  const Traffic eager = traffic_of(counted);
  EXPECT_LT(static_cast<double>(moved.read), 0.7 * kSteps * static_cast<double>(eager.read));
  EXPECT_LT(static_cast<double>(moved.written), 0.7 * kSteps * static_cast<double>(eager.written));
  EXPECT_GT(moved.experts_called, kSteps);
  EXPECT_EQ(bytes_of_state(*disk, facts(), GetParam().placement), bytes_of_state(*memory, facts(), {}));
}

// Validations between steps choose other experts. A save contains all experts with all updates. A run that resumes from the
// save continues with the same numbers.
TEST_P(LazyExperts, AreSavedAndResumedWithAllTheirUpdates) {
  if (settings_.optimizer_state != Packing::fp32) GTEST_SKIP() << "CopySink takes float32";
  const Schedule step = spilled(), validation = evaluation_step(facts(), kMicros, ComputeOrder::by_block);
  const Schedule spilled_validation = with_residency(validation, GetParam().placement, 1);
  auto memory = engine({}), disk = engine(GetParam().placement);
  CopySink wanted, saved;
  for (int i = 0; i < kSteps; i++) {
    const Batch here = batch(i), unseen = batch(1000 + i);
    const bool saves = i == 20;
    const StepOutcome a = memory->run(saves ? with_save(plain()) : plain(), {&here, i, rate(i), saves ? &wanted : nullptr});
    const StepCounters counters = disk->counters();
    const StepOutcome b = disk->run(saves ? with_save(step) : step, {&here, i, rate(i), saves ? &saved : nullptr});
    ASSERT_EQ(a.loss, b.loss) << i;
    if (i % 7 == 3) {
      const StepInput unseen_input{&unseen, 0, 0, nullptr};
      ASSERT_EQ(memory->run(validation, unseen_input).loss, disk->run(spilled_validation, unseen_input).loss) << i;
    }
    if (!saves) continue;
    ASSERT_EQ(wanted.saved, saved.saved);
    disk.reset();  // only one engine may use the folder
    disk = engine(GetParam().placement);
    const auto fill = [&](const TensorPiece& part) {
      std::copy_n(saved.saved.at(part.name).begin() + part.begin, part.values.size(), part.values.begin());
    };
    for (BlockId block = 0; block < static_cast<BlockId>(disk->state().blocks()); block++) {
      disk->state().write_parameters(block, fill);
      disk->state().write_optimizer(block, fill);
    }
    disk->restore(counters);
    ASSERT_EQ(disk->run(step, {&here, i, rate(i), nullptr}).loss, a.loss);  // repeats the step that wrote the save
  }
  EXPECT_EQ(bytes_of_state(*disk, facts(), GetParam().placement), bytes_of_state(*memory, facts(), {}));
}

INSTANTIATE_TEST_SUITE_P(Ways, LazyExperts, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& test) { return test.param.name; });

}  // namespace
}  // namespace megalith

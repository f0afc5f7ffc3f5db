// Packed optimizer state and activations. The place of state changes no number, and the loss becomes only a little worse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/support.h"
#include "schedule/check/checker.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/passes/save.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

using namespace testing_support;
constexpr Placement M = Placement::in_memory, O = Placement::optimizer_on_disk, A = Placement::on_disk;

class Packed : public ::testing::Test {
 protected:
  Packed() : folder_(std::filesystem::temp_directory_path() / fmt::format("megalith-packed-test-{}", ::getpid())) {}
  ~Packed() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Engine> engine_with(const ModelShape& shape, const TrainSettings& settings,
                                      std::vector<Placement> placement) {
    at::set_num_threads(1);
    auto engine = std::make_unique<Engine>(shape, settings, 3, true, StorageOptions{std::move(placement), folder_});
    engine->state().initialise(3);
    return engine;
  }
  std::filesystem::path folder_;
};

// In this shape, parameters begin inside blocks of 256 elements, and the end of a chunk cuts a parameter inside a block.
ModelShape odd_shape() {
  ModelShape shape = tiny(&gpt2_family);
  shape.layers = 3;
  shape.hidden = 40;
  shape.vocab = 6550;
  fill_defaults(shape);
  return shape;
}

using StateBytes = std::map<std::string, std::vector<std::byte>>;

StateBytes state_of(Engine& engine, const std::vector<BlockFacts>& blocks, const std::vector<Placement>& placement) {
  engine.run(apply_pending_only(blocks, placement), {nullptr, 0, 0, nullptr});
  StateBytes out;
  const auto add = [&](const TensorPiece& piece) {
    out[piece.name].insert(out[piece.name].end(), piece.bytes().begin(), piece.bytes().end());
  };
  for (BlockId b = 0; b < static_cast<BlockId>(engine.state().blocks()); b++) {
    engine.state().read_parameters(b, Lane::compute, add);
    engine.state().read_optimizer(b, Lane::compute, add);
  }
  return out;
}

TEST_F(Packed, StateOnDiskChangesNoBit) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lion, OptimizerKind::sgd})
    for (Packing packing : {Packing::bf16, Packing::int8}) {
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(kind), static_cast<int>(packing)));
      const ModelShape shape = odd_shape();
      TrainSettings settings = settings_with(kind);
      settings.optimizer_state = packing;
      const Batch batch = random_batch(shape, 4, 16);
      const auto blocks = block_facts(shape, {2, 16}, Precision::fp32);
      auto reference = engine_with(shape, settings, {});
      const auto wanted = memorise(*reference, batch, training_step(blocks, 2), 5, 0.01);
      const StateBytes wanted_state = state_of(*reference, blocks, {});
      // In memory, two slots in int8 take a quarter of the bytes of float32, plus the scales.
      TrainSettings wide = settings;
      wide.optimizer_state = Packing::fp32;
      auto plain = engine_with(shape, wide, {});
      const double share = static_cast<double>(reference->state().optimizer_bytes(0)) /
                           static_cast<double>(plain->state().optimizer_bytes(0));
      EXPECT_NEAR(share, packing == Packing::bf16 ? 0.5 : 0.2539, 0.006);  // every chunk has room for the most scales of one
      for (const std::vector<Placement>& placement :
           {std::vector<Placement>{A, A, A, A, A}, {O, O, O, O, O}, {M, O, A, M, O}}) {
        auto engine = engine_with(shape, settings, placement);
        const Schedule step = with_residency(training_step(blocks, 2, ComputeOrder::by_block), placement, 2);
        EXPECT_EQ(memorise(*engine, batch, step, 5, 0.01), wanted);
        const StateBytes state = state_of(*engine, blocks, placement);
        ASSERT_EQ(state.size(), wanted_state.size());
        for (const auto& [name, bytes] : wanted_state) EXPECT_TRUE(state.at(name) == bytes) << name;
      }
    }
}

struct CopySink : CheckpointSink {
  std::map<std::string, std::vector<std::byte>> saved;
  std::map<std::string, std::vector<int64_t>> shapes;
  void write(Kind, const TensorPiece& part) override {
    const auto size = part.type == DType::f32 ? 4 : part.type == DType::bf16 ? 2 : 1;
    auto& whole = saved[part.name];
    shapes[part.name] = part.shape;
    const auto from = static_cast<size_t>(part.begin * size);
    whole.resize(std::max(whole.size(), from + part.bytes().size()));
    std::copy(part.bytes().begin(), part.bytes().end(), whole.begin() + static_cast<std::ptrdiff_t>(from));
  }
  void commit() override {}
};

TEST_F(Packed, WhatIsSavedAndFilledInAgainGoesOnBitForBit) {
  for (Packing packing : {Packing::bf16, Packing::int8})
    for (const std::vector<Placement>& placement : {std::vector<Placement>{}, {A, O, M, A, O}}) {
      const ModelShape shape = odd_shape();
      TrainSettings settings = settings_with();
      settings.optimizer_state = packing;
      const Batch batch = random_batch(shape, 2, 16);
      const auto blocks = block_facts(shape, {2, 16}, Precision::fp32);
      auto first = engine_with(shape, settings, {});
      memorise(*first, batch, training_step(blocks, 1), 3, 0.01);
      CopySink sink;
      first->run(save_only(blocks), {nullptr, 3, 0, &sink});
      // The names, types and shapes that a checkpoint is planned with must be those that are written.
      for (BlockId b = 0; b < static_cast<BlockId>(blocks.size()); b++)
        for (const TensorPiece& part : first->state().optimizer_state(b)) {
          int64_t bytes = part.type == DType::f32 ? 4 : part.type == DType::bf16 ? 2 : 1;
          for (int64_t extent : part.shape) bytes *= extent;
          ASSERT_EQ(static_cast<int64_t>(sink.saved.at(part.name).size()), bytes) << part.name;
        }
      auto second = engine_with(shape, settings, placement);
      const auto fill = [&](const TensorPiece& piece) {
        const auto& whole = sink.saved.at(piece.name);
        const auto size = piece.type == DType::f32 ? 4 : piece.type == DType::bf16 ? 2 : 1;
        std::copy_n(whole.begin() + piece.begin * size, piece.bytes().size(), piece.bytes().begin());
      };
      for (BlockId b = 0; b < static_cast<BlockId>(blocks.size()); b++) {
        second->state().write_parameters(b, fill);
        second->state().write_optimizer(b, fill);
      }
      second->restore(first->counters());
      const Schedule step = placement.empty()
                                ? training_step(blocks, 1)
                                : with_residency(training_step(blocks, 1, ComputeOrder::by_block), placement, 1);
      for (int i = 3; i < 6; i++)
        EXPECT_EQ(first->run(training_step(blocks, 1), {&batch, i, 0.01, nullptr}).loss,
                  second->run(step, {&batch, i, 0.01, nullptr}).loss);
    }
}

TEST_F(Packed, RecomputationChangesNoBitOfPackedActivations) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family})
    for (Packing packing : {Packing::bf16, Packing::int8}) {
      ModelShape shape = tiny(family, {0.1, 0.1, 0});
      shape.layers = 3;
      TrainSettings settings = settings_with();
      const Batch batch = random_batch(shape, 4, 16);
      auto exact = engine_with(shape, settings, {});
      const auto without = memorise(*exact, batch, step_of(shape, batch, 2), 5, 0.01);
      settings.activations = packing;
      const auto blocks = block_facts(shape, {2, 16}, Precision::fp32, packing);
      auto reference = engine_with(shape, settings, {});
      const auto wanted = memorise(*reference, batch, training_step(blocks, 2), 5, 0.01);
      EXPECT_EQ(wanted.front(), without.front()) << "forward is exact";
      EXPECT_NE(wanted, without);
      for (int every : {1, 2})
        for (ComputeOrder order : {ComputeOrder::by_micro, ComputeOrder::by_block}) {
          const Schedule step = training_step(blocks, 2, order, recompute_every(blocks, every));
          const auto problems = check(step);
          ASSERT_TRUE(problems.empty()) << problems.front().reason;
          auto engine = engine_with(shape, settings, {});
          EXPECT_EQ(memorise(*engine, batch, step, 5, 0.01), wanted);
        }
    }
}

// The error is that of the gradient of all parameters together, divided by its norm.
TEST_F(Packed, GradientsTakeTheRoundingOfActivations) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
    ModelShape shape = tiny(family);
    shape.layers = 4;
    shape.hidden = 64;
    shape.ffn = 256;
    fill_defaults(shape);
    const Batch batch = random_batch(shape, 8, 32);
    auto exact = engine_with(shape, settings_with(), {});
    memorise(*exact, batch, step_of(shape, batch, 1), 20, 0.003);  // past the first steps
    const Tensors start = parameters(*exact);
    exact->run(gradients_only(step_of(shape, batch, 1)), {&batch, 20, 0, nullptr});
    const Tensors wanted = gradients(*exact);
    std::printf("  %-6s", std::string(family->name).c_str());
    double last = 0;
    for (Packing packing : {Packing::bf16, Packing::int8}) {
      TrainSettings settings = settings_with();
      settings.activations = packing;
      auto engine = engine_with(shape, settings, {});
      for (BlockId b = 0; b < static_cast<BlockId>(engine->state().blocks()); b++)
        for (const TensorPiece& part : engine->state().parameters(b))
          std::copy(start.at(part.name).begin(), start.at(part.name).end(), part.values.begin());
      const Schedule step = training_step(block_facts(shape, {8, 32}, Precision::fp32, packing), 1);
      engine->run(gradients_only(step), {&batch, 20, 0, nullptr});
      Tensors off = gradients(*engine);
      for (auto& [name, values] : off)
        for (size_t i = 0; i < values.size(); i++) values[i] -= wanted.at(name)[i];
      const double error = norm_of(off) / norm_of(wanted);
      std::printf(" %s %.5f", packing == Packing::bf16 ? "bf16" : "int8", error);
      EXPECT_GT(error, last);
      EXPECT_LT(error, packing == Packing::bf16 ? 0.005 : 0.02);
      last = error;
    }
    std::printf("\n");
  }
}

// Returns the batch of one step. Its sequences follow a rule, so that a model can learn something: a token is a function of
// the two tokens before it, and one in eight is random.
Batch ruled_batch(const ModelShape& shape, int64_t step) {
  constexpr int64_t B = 8, T = 24;
  Batch batch = random_batch(shape, B, T, 1000 + static_cast<uint64_t>(step));
  for (int64_t i = 0; i < B * T; i++) {
    if (i % T < 2) continue;
    if (batch.ids[i] % 8 != 0) batch.ids[i] = (5 * batch.ids[i - 1] + 7 * (batch.ids[i - 2] % 2) + 3) % shape.vocab;
    batch.targets[i - 1] = batch.ids[i];
  }
  return batch;
}

// Returns the mean loss of the last steps. The rate falls to zero, so the result depends little on the steps before.
double learned(const ModelShape& shape, const TrainSettings& settings, int steps) {
  auto engine = make_engine(shape, settings);
  double last = 0;
  for (int i = 0; i < steps; i++) {
    const Batch batch = ruled_batch(shape, i);
    const double lr = settings.lr * (1 - static_cast<double>(i) / steps);
    const double loss = engine->run(step_of(shape, batch, 1), {&batch, i, lr, nullptr}).loss;
    if (i >= steps - 50) last += loss / 50;
  }
  return last;
}

TEST_F(Packed, TrainingPaysLittle) {
  ModelShape shape = tiny(&llama_family);
  shape.hidden = 64;
  shape.ffn = 128;
  shape.vocab = 32;
  fill_defaults(shape);
  constexpr int kSteps = 400;
  struct Case {
    const char* name;
    OptimizerKind optimizer;
    double lr, beta2;
  };
  for (const Case& c : {Case{"adamw, beta2 0.95", OptimizerKind::adamw, 0.003, 0.95},
                        Case{"adamw, beta2 0.999", OptimizerKind::adamw, 0.003, 0.999},
                        Case{"lion", OptimizerKind::lion, 0.0006, 0.99}}) {
    TrainSettings settings = settings_with(c.optimizer);
    settings.lr = c.lr;
    settings.beta2 = c.beta2;
    const double exact = learned(shape, settings, kSteps);
    EXPECT_LT(exact, 1.5);  // far below ln 32 = 3.47: the model learns
    std::printf("  %-18s fp32 %.4f", c.name, exact);
    for (Packing packing : {Packing::bf16, Packing::int8}) {
      TrainSettings packed = settings;
      packed.optimizer_state = packing;
      const double state = learned(shape, packed, kSteps);
      packed = settings;
      packed.activations = packing;
      const double activations = learned(shape, packed, kSteps);
      std::printf("; %s state %+.4f, activations %+.4f", packing == Packing::bf16 ? "bf16" : "int8", state - exact,
                  activations - exact);
      EXPECT_NEAR(state, exact, 0.02 * exact);
      EXPECT_NEAR(activations, exact, 0.02 * exact);
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace megalith

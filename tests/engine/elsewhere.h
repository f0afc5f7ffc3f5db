// Checks of runs whose state is elsewhere (on disk, or behind a device): they must compute the numbers of a run in memory.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/support.h"
#include "schedule/passes/residency.h"
#include "schedule/passes/save.h"

namespace megalith::testing_support {

inline ModelShape three_layers(const Family* family, bool tied = true, Dropout dropout = {}) {
  ModelShape shape = tiny(family, dropout);
  shape.layers = 3;
  shape.tied = tied;
  return shape;
}

// Every architecture, optimizer and precision, and experts, at least once.
struct ElsewhereCase {
  const Family* family;
  bool tied;
  OptimizerKind optimizer;
  Precision precision;
  std::optional<Router> router{};  // of a layer's experts

  ModelShape shape() const {
    ModelShape shape = three_layers(family, tied, {0.1, 0.1, 0});
    if (router) shape.experts = tiny_experts(*router).experts;
    return shape;
  }
  TrainSettings settings() const {
    TrainSettings settings = settings_with(optimizer);
    settings.precision = precision;
    settings.clip = 0.5;
    return settings;
  }
};
inline const std::vector<ElsewhereCase>& elsewhere_cases() {
  static const std::vector<ElsewhereCase> all{
      {&gpt2_family, true, OptimizerKind::adamw, Precision::fp32},
      {&llama_family, false, OptimizerKind::adamw, Precision::fp32},
      {&bert_family, true, OptimizerKind::lion, Precision::fp32},
      {&llama_family, true, OptimizerKind::adafactor, Precision::fp32},
      {&gpt2_family, true, OptimizerKind::adamw, Precision::bf16},
      {&gpt2_family, false, OptimizerKind::adafactor, Precision::bf16},
      {&llama_family, true, OptimizerKind::sgd, Precision::fp16},
      {&llama_family, false, OptimizerKind::adamw, Precision::fp32, Router::noisy},
      {&llama_family, true, OptimizerKind::adamw, Precision::bf16, Router::sigmoid},
  };
  return all;
}

inline std::vector<BlockFacts> facts_of(const ModelShape& shape, const Batch& batch, int32_t micros,
                                        Precision precision = Precision::fp32) {
  return block_facts(shape, {batch.sequences / micros, batch.length}, precision);
}

// Returns parameters and optimizer state from memory or disk, after applying pending updates.
inline Tensors all_state(Engine& engine, const std::vector<BlockFacts>& blocks, const std::vector<Placement>& placement,
                         const RankLayout& layout = {}) {
  engine.run(apply_pending_only(blocks, placement, layout), {nullptr, 0, 0, nullptr});
  Tensors out;
  const auto add = [&](const TensorPiece& piece) {
    std::vector<float>& whole = out[piece.name];
    EXPECT_EQ(static_cast<int64_t>(whole.size()), piece.begin) << piece.name;
    whole.insert(whole.end(), piece.values.begin(), piece.values.end());
  };
  for (BlockId b = 0; b < static_cast<BlockId>(engine.state().blocks()); b++) {
    engine.state().read_parameters(b, Lane::compute, add);
    engine.state().read_optimizer(b, Lane::compute, add);
  }
  return out;
}

// Copies everything that is saved.
struct CopySink : CheckpointSink {
  Tensors saved;
  bool committed = false;
  void write(Kind, const TensorPiece& part) override {
    std::vector<float>& whole = saved[part.name];
    whole.resize(std::max(whole.size(), static_cast<size_t>(part.begin) + part.values.size()));
    std::copy(part.values.begin(), part.values.end(), whole.begin() + part.begin);
  }
  void commit() override { committed = true; }
};

// An engine and the schedule of its step.
struct Side {
  Engine& engine;
  const Schedule& step;
};

inline void expect_evaluation_to_change_nothing(Side memory, const Schedule& memory_evaluation, Side other,
                                                const Schedule& other_evaluation, const Batch& batch, const Batch& unseen) {
  for (int i = 0; i < 4; i++) {
    EXPECT_EQ(memory.engine.run(memory.step, {&batch, i, 0.01, nullptr}).loss,
              other.engine.run(other.step, {&batch, i, 0.01, nullptr}).loss);
    if (i == 1) {
      EXPECT_EQ(memory.engine.run(memory_evaluation, {&unseen, 0, 0, nullptr}).loss,
                other.engine.run(other_evaluation, {&unseen, 0, 0, nullptr}).loss);
    }
    if (i >= 1) {
      EXPECT_TRUE(memory.engine.logits(batch.ids, 4, nullptr, true).equal(other.engine.logits(batch.ids, 4, nullptr, true)));
      EXPECT_EQ(memory.engine.losses(unseen), other.engine.losses(unseen));
    }
  }
}

// For fp16. The first steps overflow, because the loss scale begins too large.
inline void expect_the_same_steps_skipped(Side memory, Side other, const Batch& batch) {
  for (Engine* engine : {&memory.engine, &other.engine}) {
    StepCounters counters = engine->counters();
    counters.loss_scale.scale = 16777216;
    engine->restore(counters);
  }
  int skipped = 0;
  for (int i = 0; i < 30; i++) {
    const StepOutcome a = memory.engine.run(memory.step, {&batch, i, 0.01, nullptr});
    const StepOutcome b = other.engine.run(other.step, {&batch, i, 0.01, nullptr});
    ASSERT_EQ(a.skipped, b.skipped);
    ASSERT_EQ(a.loss, b.loss) << i;
    skipped += a.skipped;
  }
  EXPECT_GT(skipped, 1);
  EXPECT_LT(skipped, 28);
}

// A save in a step writes the state before the step. `last_save` writes the state after it.
inline void expect_the_same_saves(Side memory, const Schedule& memory_last_save, Side other, const Schedule& other_last_save,
                                  const Batch& batch) {
  for (int i = 0; i < 2; i++)
    for (Side side : {memory, other}) side.engine.run(side.step, {&batch, i, 0.01, nullptr});
  CopySink a, b, last_a, last_b;
  EXPECT_EQ(memory.engine.run(with_save(memory.step), {&batch, 2, 0.01, &a}).loss,
            other.engine.run(with_save(other.step), {&batch, 2, 0.01, &b}).loss);
  EXPECT_TRUE(a.committed && b.committed);
  EXPECT_EQ(a.saved, b.saved);
  memory.engine.run(memory_last_save, {nullptr, 3, 0, &last_a});
  other.engine.run(other_last_save, {nullptr, 3, 0, &last_b});
  EXPECT_EQ(last_a.saved, last_b.saved);
  EXPECT_NE(a.saved, last_a.saved);
}

}  // namespace megalith::testing_support

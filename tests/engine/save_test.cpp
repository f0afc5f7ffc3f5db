// Save ops write the state from before the step, each part once, while the step computes.
#include <gtest/gtest.h>

#include "engine/support.h"
#include "schedule/passes/save.h"

namespace megalith {
namespace {
using namespace testing_support;

struct Recorder : CheckpointSink {
  void write(Kind kind, const TensorPiece& part) override {
    EXPECT_EQ(commits, 0) << part.name << " came after commit";
    Tensors& to = kind == Kind::parameter ? values : state;
    EXPECT_FALSE(to.contains(part.name)) << part.name << " came twice";
    int64_t size = 1;
    for (int64_t n : part.shape) size *= n;
    EXPECT_EQ(size, static_cast<int64_t>(part.values.size())) << part.name;
    to[part.name] = {part.values.begin(), part.values.end()};
  }
  void commit() override { commits++; }
  Tensors values, state;
  int commits = 0;
};

TEST(Saving, HandsOutEveryPartOnceWithTheValuesBeforeTheUpdate) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adafactor, OptimizerKind::sgd})
    for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
      ModelShape shape = tiny(family);
      Batch batch = random_batch(shape, 4, 12);
      auto engine = make_engine(shape, settings_with(kind));
      Schedule step = step_of(shape, batch, 2), saving = with_save(step);
      engine->run(step, {&batch, 0, 1e-2, nullptr});
      for (int i = 1; i < 6; i++) {  // repeated, so that a race would show
        Tensors values = parameters(*engine), state = optimizer_state(*engine);
        Recorder sink;
        engine->run(saving, {&batch, i, 1e-2, &sink});
        EXPECT_EQ(sink.values, values);
        EXPECT_EQ(sink.state, state);
        EXPECT_EQ(sink.commits, 1);
        EXPECT_NE(parameters(*engine), values);
      }
    }
}

TEST(Saving, DoesNotChangeTheResult) {
  ModelShape shape = tiny(&llama_family);
  Batch batch = random_batch(shape, 4, 12);
  auto plain = make_engine(shape), saving = make_engine(shape);
  Schedule step = step_of(shape, batch, 2), with = with_save(step);
  for (int i = 0; i < 5; i++) {
    Recorder sink;
    EXPECT_EQ(plain->run(step, {&batch, i, 1e-2, nullptr}).loss, saving->run(with, {&batch, i, 1e-2, &sink}).loss);
  }
  EXPECT_EQ(parameters(*plain), parameters(*saving));
}

TEST(Saving, WithoutAStepGivesTheStateAsItIs) {
  ModelShape shape = tiny(&gpt2_family);
  Batch batch = random_batch(shape, 2, 12);
  auto engine = make_engine(shape);
  Schedule step = step_of(shape, batch, 1);
  engine->run(step, {&batch, 0, 1e-2, nullptr});
  Tensors values = parameters(*engine);
  Recorder sink;
  engine->run(save_only(step.blocks), {nullptr, 1, 0, &sink});
  EXPECT_EQ(sink.values, values);
  EXPECT_EQ(parameters(*engine), values);
  EXPECT_EQ(sink.commits, 1);
}

TEST(Saving, AStateReadBackContinuesBitIdentically) {
  // Resumes without a disk: copies parts and counters into a new engine.
  ModelShape shape = tiny(&llama_family, {0.1, 0.1, 0});
  Batch batch = random_batch(shape, 4, 12);
  auto first = make_engine(shape);
  Schedule step = step_of(shape, batch, 2);
  for (int i = 0; i < 3; i++) first->run(step, {&batch, i, 1e-2, nullptr});
  Recorder sink;
  first->run(save_only(step.blocks), {nullptr, 3, 0, &sink});
  auto third = std::make_unique<Engine>(shape, TrainSettings{}, 3, true);
  for (BlockId b = 0; b < static_cast<BlockId>(third->state().blocks()); b++) {
    for (TensorPiece& part : third->state().parameters(b))
      std::copy(sink.values[part.name].begin(), sink.values[part.name].end(), part.values.begin());
    for (TensorPiece& part : third->state().optimizer_state(b))
      std::copy(sink.state[part.name].begin(), sink.state[part.name].end(), part.values.begin());
  }
  third->state().values_changed();
  third->restore(first->counters());
  for (int i = 3; i < 6; i++)
    EXPECT_EQ(third->run(step, {&batch, i, 1e-2, nullptr}).loss, first->run(step, {&batch, i, 1e-2, nullptr}).loss);
  EXPECT_EQ(parameters(*third), parameters(*first));
}

}  // namespace
}  // namespace megalith

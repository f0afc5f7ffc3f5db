// Token dropping in whole steps. It must not depend on micro-batches or recomputation, and must not change evaluation.
#include <gtest/gtest.h>

#include "engine/support.h"

namespace megalith {
namespace {
using namespace testing_support;

struct Case {
  const Family* family;
  Dropout dropout = {};
  bool documents = false, prefix = false;
};

Batch dropping_batch(const ModelShape& shape, const Case& c) {
  Batch batch = random_batch(shape, 8, 24);
  batch.dropping = {9, {0, 1}, {}};
  if (c.documents)
    for (int64_t n = 0; n < 8 * 24; n++) batch.document_begin.push_back(n % 24 < 10 ? 0 : n % 24 < 11 ? 10 : 11);
  if (c.prefix) batch.prefix.assign(8, 7);
  return batch;
}

TEST(TokenDroppingStep, GradientsDoNotDependOnTheMicroBatch) {
  for (const Case& c : {Case{&gpt2_family}, Case{&llama_family}, Case{&bert_family}, Case{&gpt2_family, {0.1, 0.1, 0.1}},
                        Case{&llama_family, {}, true}, Case{&gpt2_family, {}, true}, Case{&llama_family, {}, false, true}}) {
    const ModelShape shape = tiny(c.family, c.dropout);
    const Batch batch = dropping_batch(shape, c);
    auto whole = make_engine(shape);
    const double loss = whole->run(gradients_only(step_of(shape, batch, 1)), {&batch, 5, 1e-3, nullptr}).loss;
    const Tensors wanted = gradients(*whole);
    for (int32_t micros : {2, 4, 8}) {
      auto engine = make_engine(shape);
      EXPECT_NEAR(engine->run(gradients_only(step_of(shape, batch, micros)), {&batch, 5, 1e-3, nullptr}).loss, loss,
                  1e-6 * loss);
      EXPECT_LT(gradient_distance(gradients(*engine), wanted), 1e-4) << micros;
    }
    // Recomputation drops the same tokens.
    for (Keep keep : {Keep::attention, Keep::input}) {
      Schedule again = training_step(block_facts(shape, {8, 24}, Precision::fp32), 1, ComputeOrder::by_micro,
                                     {Keep::all, keep, keep, Keep::all});
      auto engine = make_engine(shape);
      EXPECT_EQ(engine->run(gradients_only(std::move(again)), {&batch, 5, 1e-3, nullptr}).loss, loss);
      EXPECT_EQ(gradients(*engine), wanted);
    }
    // Another step drops other tokens.
    clear_gradients(*whole);
    EXPECT_NE(whole->run(gradients_only(step_of(shape, batch, 1)), {&batch, 6, 1e-3, nullptr}).loss, loss);
  }
}

TEST(TokenDroppingStep, EvaluationDropsNothing) {
  const ModelShape shape = tiny(&llama_family);
  auto engine = make_engine(shape);
  Batch batch = dropping_batch(shape, {&llama_family});
  const Schedule evaluation = evaluation_step(block_facts(shape, {8, 24}, Precision::fp32), 1);
  const double with = engine->run(evaluation, {&batch, 0, 0, nullptr}).loss;
  batch.dropping = {};
  EXPECT_EQ(engine->run(evaluation, {&batch, 0, 0, nullptr}).loss, with);
}

TEST(TokenDroppingStep, KeepingAllIsTheStepItself) {
  const ModelShape shape = tiny(&gpt2_family);
  auto one = make_engine(shape), other = make_engine(shape);
  Batch batch = dropping_batch(shape, {&gpt2_family});
  batch.dropping.kept = 24;
  one->run(step_of(shape, batch, 2), {&batch, 0, 1e-3, nullptr});
  batch.dropping = {};
  other->run(step_of(shape, batch, 2), {&batch, 0, 1e-3, nullptr});
  EXPECT_EQ(parameters(*one), parameters(*other));
}

TEST(TokenDroppingStep, ItLearns) {
  const ModelShape shape = tiny(&llama_family);
  auto engine = make_engine(shape);
  Batch batch = dropping_batch(shape, {&llama_family});
  batch.dropping.kept = 16;
  const std::vector<double> losses = memorise(*engine, batch, step_of(shape, batch, 1), 150, 5e-3);
  EXPECT_LT(losses.back(), 0.7 * losses.front());
}

}  // namespace
}  // namespace megalith

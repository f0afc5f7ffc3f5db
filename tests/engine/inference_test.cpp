// Engines without gradients: validation, per-token losses, generation with a cache.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/support.h"

namespace megalith {
namespace {
using namespace testing_support;

class Inference : public testing::TestWithParam<const Family*> {};

TEST_P(Inference, EvaluationIsTheTrainingLossWithoutDropout) {
  ModelShape plain = tiny(GetParam()), dropping = tiny(GetParam(), {0.3, 0.3, 0.3});
  Batch batch = random_batch(plain, 4, 16);
  double wanted = make_engine(plain)->run(gradients_only(step_of(plain, batch, 2)), {&batch, 0, 0, nullptr}).loss;
  auto engine = make_engine(dropping);
  for (int32_t micros : {1, 2, 4}) {
    Schedule evaluation = evaluation_step(block_facts(dropping, {4 / micros, 16}, Precision::fp32), micros);
    StepOutcome outcome = engine->run(evaluation, {&batch, 0, 0, nullptr});
    EXPECT_NEAR(outcome.loss, wanted, 1e-6 * wanted);
    EXPECT_EQ(outcome.targets, batch.target_count());
  }
  EXPECT_EQ(norm_of(gradients(*engine)), 0);  // evaluation does not change gradients
}

TEST_P(Inference, LossesOfPositionsAddUpToTheMeanLoss) {
  ModelShape shape = tiny(GetParam());
  Batch batch = random_batch(shape, 3, 16);
  auto engine = make_engine(shape);
  StepOutcome outcome = engine->run(gradients_only(step_of(shape, batch, 1)), {&batch, 0, 0, nullptr});
  std::vector<float> losses = engine->losses(batch);
  ASSERT_EQ(losses.size(), batch.targets.size());
  for (size_t i = 0; i < losses.size(); i++) EXPECT_EQ(losses[i] == 0, batch.targets[i] == kNoTarget) << i;
  double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  EXPECT_NEAR(sum / static_cast<double>(batch.target_count()), outcome.loss, 1e-6 * outcome.loss);
}

TEST_P(Inference, LossesFollowFromTheLogits) {
  ModelShape shape = tiny(GetParam());
  Batch batch = random_batch(shape, 2, 9);
  auto engine = make_engine(shape);
  at::Tensor logits = engine->logits(batch.ids, 2, nullptr, false).contiguous();
  ASSERT_EQ(logits.size(0), 18);
  std::vector<float> losses = engine->losses(batch);
  for (int64_t n = 0; n < 18; n++) {
    int64_t target = batch.targets[static_cast<size_t>(n)];
    if (target == kNoTarget) continue;
    const float* row = logits.const_data_ptr<float>() + n * shape.vocab;
    double sum = 0;
    for (int64_t v = 0; v < shape.vocab; v++) sum += std::exp(static_cast<double>(row[v]));
    EXPECT_NEAR(losses[static_cast<size_t>(n)], std::log(sum) - row[target], 1e-5);
  }
}

TEST_P(Inference, AModelWithoutOptimizerGivesTheSameLogits) {
  ModelShape shape = tiny(GetParam());
  Batch batch = random_batch(shape, 1, 9);
  auto training = make_engine(shape);
  Engine reading(shape, {}, 3, false);
  reading.state().initialise(3);
  EXPECT_TRUE(reading.logits(batch.ids, 1, nullptr, false).equal(training->logits(batch.ids, 1, nullptr, false)));
}

INSTANTIATE_TEST_SUITE_P(Architectures, Inference, testing::Values(&gpt2_family, &llama_family, &bert_family));

struct CacheCase {
  std::string name;
  const Family* family;
  int64_t kv_heads;
};
void PrintTo(const CacheCase& c, std::ostream* out) { *out << c.name; }

class Cache : public testing::TestWithParam<CacheCase> {};

TEST_P(Cache, LogitsEqualThoseOfAFullForward) {
  ModelShape shape = tiny(GetParam().family);
  shape.kv_heads = GetParam().kv_heads;
  auto engine = make_engine(shape);
  // With initial weights, attention is nearly uniform. Make it stronger.
  for (BlockId b = 0; b < static_cast<BlockId>(engine->state().blocks()); b++)
    for (TensorPiece& part : engine->state().parameters(b))
      if (part.shape.size() == 2)
        for (float& v : part.values) v *= 8;
  for (int64_t sequences : {1, 3}) {
    Batch batch = random_batch(shape, sequences, 23);
    at::Tensor full = engine->logits(batch.ids, sequences, nullptr, false).view({sequences, 23, shape.vocab});
    const double largest = std::max(1.0, full.abs().max().item<double>());
    KeyValueCache cache;
    int64_t begin = 0;
    for (int64_t count : {5, 1, 1, 9, 1, 6}) {  // a prompt, tokens one by one, several at once
      std::vector<int64_t> ids;
      for (int64_t s = 0; s < sequences; s++)
        for (int64_t t = begin; t < begin + count; t++) ids.push_back(batch.ids[static_cast<size_t>(s * 23 + t)]);
      at::Tensor part = engine->logits(ids, sequences, &cache, false).view({sequences, count, shape.vocab});
      EXPECT_LT(part.sub(full.narrow(1, begin, count)).abs().max().item<double>(), 1e-5 * largest) << begin;
      begin += count;
    }
    EXPECT_EQ(cache.positions, std::vector<int64_t>(static_cast<size_t>(sequences), 23));
    at::Tensor last = engine->logits(batch.ids, sequences, nullptr, true);
    EXPECT_LT(last.sub(full.select(1, 22)).abs().max().item<double>(), 1e-5 * largest);
  }
}

TEST_P(Cache, SequencesOfDifferentLengthsGrowTogetherAsTheyWouldAlone) {
  ModelShape shape = tiny(GetParam().family);
  shape.ffn = 64;  // a multiple of 32: LibTorch's GELU rounds the elements after the last multiple differently
  shape.kv_heads = GetParam().kv_heads;
  auto engine = make_engine(shape);
  const Batch batch = random_batch(shape, 3, 23);
  auto ids_of = [&](int64_t s, int64_t begin, int64_t count) {
    auto first = batch.ids.begin() + s * 23 + begin;
    return std::vector<int64_t>(first, first + count);
  };
  const std::vector<int64_t> lengths{3, 17, 9};
  KeyValueCache together;
  for (int64_t s = 0; s < 3; s++) {
    together.active = {s};
    engine->logits(ids_of(s, 0, lengths[static_cast<size_t>(s)]), 1, &together, true);
  }
  std::vector<KeyValueCache> alone(3);
  for (int64_t s = 0; s < 3; s++) engine->logits(ids_of(s, 0, lengths[static_cast<size_t>(s)]), 1, &alone[s], true);
  for (int64_t step = 0; step < 4; step++) {
    // The second sequence stops after half of the steps.
    together.active = step < 2 ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{2, 0};
    std::vector<int64_t> next;
    for (int64_t s : together.active) next.push_back(ids_of(s, lengths[static_cast<size_t>(s)] + step, 1)[0]);
    at::Tensor rows = engine->logits(next, static_cast<int64_t>(next.size()), &together, true);
    for (size_t i = 0; i < next.size(); i++) {
      at::Tensor row = engine->logits({next[i]}, 1, &alone[static_cast<size_t>(together.active[i])], true);
      EXPECT_TRUE(rows.narrow(0, static_cast<int64_t>(i), 1).equal(row)) << step << " " << i;
    }
  }
  EXPECT_EQ(together.positions, (std::vector<int64_t>{7, 19, 13}));
}

INSTANTIATE_TEST_SUITE_P(Decoders, Cache,
                         testing::Values(CacheCase{"Gpt2", &gpt2_family, 4}, CacheCase{"Llama", &llama_family, 4},
                                         CacheCase{"LlamaGrouped", &llama_family, 2},
                                         CacheCase{"LlamaOneKeyHead", &llama_family, 1}),
                         [](const auto& test) { return test.param.name; });

TEST(Visibility, ALaterTokenDoesNotChangeEarlierLogits) {
  for (const Family* family : {&gpt2_family, &llama_family}) {
    ModelShape shape = tiny(family);
    Batch batch = random_batch(shape, 1, 20);
    auto engine = make_engine(shape);
    at::Tensor before = engine->logits(batch.ids, 1, nullptr, false);
    batch.ids[13] = (batch.ids[13] + 1) % shape.vocab;
    at::Tensor after = engine->logits(batch.ids, 1, nullptr, false);
    EXPECT_TRUE(before.narrow(0, 0, 13).equal(after.narrow(0, 0, 13)));
    EXPECT_FALSE(before.narrow(0, 13, 1).equal(after.narrow(0, 13, 1)));
  }
}

TEST(Visibility, BertSeesBothWays) {
  ModelShape shape = tiny(&bert_family);
  Batch batch = random_batch(shape, 1, 20);
  auto engine = make_engine(shape);
  at::Tensor before = engine->logits(batch.ids, 1, nullptr, false);
  batch.ids[13] = (batch.ids[13] + 1) % shape.vocab;
  EXPECT_FALSE(before.narrow(0, 0, 1).equal(engine->logits(batch.ids, 1, nullptr, false).narrow(0, 0, 1)));
}

TEST(Visibility, APrefixSeesItselfBothWaysAndTheRestIsCausal) {
  ModelShape shape = tiny(&gpt2_family);
  Batch batch = random_batch(shape, 1, 20);
  batch.prefix = {8};
  auto engine = make_engine(shape);
  std::vector<float> before = engine->losses(batch);
  auto changed_at = [&](size_t at) {  // positions before `at` whose loss changes with the token at `at`
    Batch other = batch;
    other.ids[at] = (other.ids[at] + 1) % shape.vocab;
    std::vector<float> after = engine->losses(other);
    int64_t count = 0;
    for (size_t i = 0; i < at; i++) count += after[i] != before[i];
    return count;
  };
  EXPECT_GT(changed_at(7), 4);   // tokens before the prefix's last token see it
  EXPECT_EQ(changed_at(8), 0);   // no earlier token sees the first token after the prefix
  EXPECT_EQ(changed_at(15), 0);
}

}  // namespace
}  // namespace megalith

// token_dropping.keep_special: tests which tokens of a batch are marked to be kept.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "data/dataset.h"

namespace megalith {
namespace {

constexpr int64_t kBegin = 1, kEnd = 2, kMask = 3, kWords = 10;  // ids from kWords on are words

VocabularyFacts vocabulary_with_special() {
  VocabularyFacts facts;
  facts.vocab_size = 100;
  facts.mask_token = kMask;
  facts.is_special = [](int64_t id) { return id < kWords; };
  return facts;
}

// Sentences of eight words between a begin and an end token.
std::vector<int64_t> sentences(size_t tokens) {
  std::vector<int64_t> ids(tokens);
  for (size_t i = 0; i < tokens; i++)
    ids[i] = i % 10 == 0 ? kBegin : i % 10 == 9 ? kEnd : kWords + static_cast<int64_t>(i * i % 89);
  return ids;
}

std::unique_ptr<Dataset> data_of(const VocabularyFacts& vocabulary, Objective objective) {
  TokenSources sources;
  sources.push_back(std::make_unique<MemorySource>(sentences(1601)));
  DataSettings settings;
  settings.sequence = 16;
  settings.valid_fraction = 0;
  return std::make_unique<Dataset>(std::move(sources), TokenSources{}, settings,
                                   ObjectiveSettings{.kind = objective, .mask_fraction = 0.5}, vocabulary, 1, 10);
}

StepShapes keeping(int64_t from, int64_t to) {
  Config config;
  config.data.sequence = 16;
  config.train.batch = 10;
  config.token_dropping.pacing = {.from = static_cast<double>(from), .to = static_cast<double>(to), .step = 1, .over = 20};
  return StepShapes(config, /*layers=*/4);
}

// A masked word is not a special token, whatever replaces it: the mask, or a random id that may be special.
TEST(SpecialTokens, AreThoseOfTheTextUnderEveryObjective) {
  for (Objective objective : {Objective::causal, Objective::masked, Objective::prefix}) {
    auto data = data_of(vocabulary_with_special(), objective);
    data->drop_tokens({1, 2}, /*keep_special=*/true);
    data->follow(keeping(4, 16), {});
    int64_t masks = 0;
    for (int64_t step = 0; step < 20; step++) {
      const Batch batch = data->train_batch(step, 10);
      ASSERT_EQ(batch.dropping.always.size(), batch.ids.size());
      for (size_t n = 0; n < batch.ids.size(); n++) {
        const bool changed = objective == Objective::masked && batch.targets[n] != kNoTarget;
        masks += batch.ids[n] == kMask;
        EXPECT_EQ(batch.dropping.always[n], !changed && batch.ids[n] < kWords) << "step " << step << " token " << n;
      }
    }
    EXPECT_EQ(masks > 0, objective == Objective::masked);
    EXPECT_TRUE(data->train_batch(20, 10).dropping.always.empty());  // no tokens are dropped any more
  }
}

TEST(SpecialTokens, ThatNobodyKnowsAreRefusedByName) {
  auto said = [](const VocabularyFacts& vocabulary) {
    try {
      data_of(vocabulary, Objective::causal)->drop_tokens({1, 2}, /*keep_special=*/true);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  VocabularyFacts vocabulary = vocabulary_with_special();
  EXPECT_EQ(said(vocabulary), "");
  vocabulary.is_special = [](int64_t) { return false; };
  EXPECT_EQ(said(vocabulary),
            "token_dropping.keep_special: expected a tokenizer with special tokens, got a tokenizer without "
            "special tokens; set data.tokenizer, or remove keep_special");
  vocabulary.is_special = nullptr;  // token shards without a tokenizer
  EXPECT_EQ(said(vocabulary),
            "token_dropping.keep_special: expected a tokenizer with special tokens, got no tokenizer (token shards do "
            "not say which tokens are special); set data.tokenizer, or remove keep_special");
  EXPECT_NO_THROW(data_of(vocabulary, Objective::causal)->drop_tokens({1, 2}, /*keep_special=*/false));
}

}  // namespace
}  // namespace megalith

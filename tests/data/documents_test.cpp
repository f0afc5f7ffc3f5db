// data.attention: document. Compares the beginnings of documents in a batch with a walk through the stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdlib.h>

#include <filesystem>
#include <random>
#include <vector>

#include "data/dataset.h"
#include "data/shard_source.h"

namespace megalith {
namespace {

struct Documents {
  std::vector<int64_t> ids;   // count up: each token is its own position
  std::vector<int64_t> ends;  // ends of documents, one past the last token

  Documents(const std::vector<int64_t>& lengths) {
    for (int64_t length : lengths) {
      for (int64_t i = 0; i < length; i++) ids.push_back(std::ssize(ids));
      if (length > 0) ends.push_back(std::ssize(ids));
    }
  }
  int64_t begin_of(int64_t position) const {
    int64_t begin = 0;
    for (int64_t end : ends)
      if (end <= position) begin = end;
    return begin;
  }
  bool ends_at(int64_t position) const { return std::ranges::find(ends, position + 1) != ends.end(); }
};

std::vector<int64_t> some_lengths(uint64_t seed, size_t count, int64_t longest) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> lengths(count);
  for (auto& length : lengths) length = static_cast<int64_t>(random() % static_cast<uint64_t>(longest + 1));
  return lengths;
}

Dataset make(TokenSources sources, Objective kind, AttentionReach attention = AttentionReach::document) {
  DataSettings settings;
  settings.sequence = 16;
  settings.valid_fraction = 0.1;
  settings.attention = attention;
  ObjectiveSettings objective;
  objective.kind = kind;
  VocabularyFacts vocabulary;
  vocabulary.vocab_size = 60'000;
  vocabulary.mask_token = 59'999;
  return Dataset(std::move(sources), {}, settings, objective, vocabulary, 1, 1);
}

void expect_documents(const Batch& batch, const Batch& plain, const Documents& truth, bool predicts_next) {
  ASSERT_EQ(batch.document_begin.size(), batch.ids.size());
  EXPECT_TRUE(plain.document_begin.empty());
  EXPECT_EQ(batch.ids, plain.ids);
  EXPECT_EQ(batch.prefix, plain.prefix);
  for (int64_t row = 0; row < batch.sequences; row++) {
    // Masked ids are not positions. An id that was not changed tells where the sequence begins.
    int64_t begin = -1;
    for (int64_t p = 0; p < batch.length && begin < 0; p++)
      if (int64_t i = row * batch.length + p; plain.targets[i] == kNoTarget || predicts_next)
        begin = batch.ids[i] - p;
    ASSERT_GE(begin, 0);
    for (int64_t p = 0; p < batch.length; p++) {
      const int64_t i = row * batch.length + p, position = begin + p;
      ASSERT_EQ(batch.document_begin[i], std::max<int64_t>(0, truth.begin_of(position) - begin)) << position;
      const bool cut = predicts_next && truth.ends_at(position);
      ASSERT_EQ(batch.targets[i], cut ? kNoTarget : plain.targets[i]) << position;
    }
  }
}

TokenSources in_memory(const Documents& documents) {
  TokenSources sources;
  sources.push_back(std::make_unique<MemorySource>(documents.ids, "a.txt", documents.ends));
  return sources;
}

}  // namespace

TEST(Documents, EveryPositionKnowsWhereItsDocumentBegins) {
  for (int64_t longest : {1, 3, 20, 200}) {
    const Documents truth(some_lengths(static_cast<uint64_t>(longest), 300, longest));
    for (Objective kind : {Objective::causal, Objective::prefix, Objective::masked}) {
      Dataset data = make(in_memory(truth), kind),
              plain = make(in_memory(truth), kind, AttentionReach::sequence);
      const bool next = kind != Objective::masked;
      expect_documents(data.train_batch(0, data.samples()), plain.train_batch(0, data.samples()), truth,
                       next);
      expect_documents(data.valid_batch(0, data.valid_sequences()),
                       plain.valid_batch(0, data.valid_sequences()), truth, next);
    }
  }
}

TEST(Documents, BordersComeFromTheIndexOfShardsAndFromTheEndsOfSources) {
  std::string made = testing::TempDir() + "megalith_documents_XXXXXX";
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const std::filesystem::path folder = made;
  {
    const auto lengths = some_lengths(9, 200, 30);
    const Documents truth(lengths);
    TokenSources shards;
    int64_t token = 0;
    for (size_t half : {0, 1}) {  // two shards, with empty documents among the others
      const std::filesystem::path prefix = folder / std::to_string(half);
      ShardWriter writer(prefix, TokenWidth::uint16);
      for (size_t d = half * 100; d < half * 100 + 100; d++) {
        for (int64_t i = 0; i < lengths[d]; i++) writer.add(std::vector{static_cast<TokenId>(token++)});
        writer.end_document();
      }
      writer.finish();
      shards.push_back(std::make_unique<ShardSource>(prefix));
    }
    Dataset data = make(std::move(shards), Objective::causal);
    Dataset plain = make(in_memory(truth), Objective::causal, AttentionReach::sequence);
    expect_documents(data.train_batch(0, data.samples()), plain.train_batch(0, data.samples()), truth, true);
  }
  std::filesystem::remove_all(folder);
}

TEST(Documents, ASliceKeepsItsPart) {
  const Documents truth(some_lengths(4, 200, 12));
  Dataset data = make(in_memory(truth), Objective::causal);
  Batch whole = data.train_batch(0, 30);
  for (int64_t step = 0; step < 5; step++) {
    Batch part = data.train_batch(step, 6), expected = whole.slice(step * 6, 6);
    EXPECT_EQ(part.document_begin, expected.document_begin);
    EXPECT_EQ(part.targets, expected.targets);
  }
}

}  // namespace megalith

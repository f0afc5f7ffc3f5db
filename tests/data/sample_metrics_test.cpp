// Tests how samples are processed, and what identifies them. tests/cli/efficiency.py compares the values with Python's.
#include "data/sample_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

namespace megalith {
namespace {

constexpr int64_t kVocab = 50;

std::vector<int64_t> some_ids(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; i++) ids.push_back(i * i % 47);
  return ids;
}

Dataset of_ids(int64_t sequence, std::vector<int64_t> ids, std::vector<int64_t> document_ends = {}) {
  DataSettings settings;
  settings.sequence = sequence;
  settings.valid_fraction = 0;
  VocabularyFacts vocabulary;
  vocabulary.vocab_size = kVocab;
  TokenSources sources;
  sources.push_back(std::make_unique<MemorySource>(std::move(ids), "ids", std::move(document_ends)));
  return Dataset(std::move(sources), {}, settings, {}, vocabulary, 1, 1);
}

Dataset make(int64_t sequence, int64_t samples, std::vector<int64_t> document_ends = {}) {
  return of_ids(sequence, some_ids(sequence * samples + 1), std::move(document_ends));
}

TEST(SampleWalk, TakesEverySampleOnceAndInOrderWhenDone) {
  for (const SampleWalk& walk : {SampleWalk{0, 100, 7, 3}, {13, 100, 512, 4}, {0, 2, 1, 5}, {4, 4, 1, 2}}) {
    std::mutex mutex;
    std::map<int64_t, int64_t> worked;
    int64_t next = walk.begin;
    EXPECT_TRUE(for_samples(
        walk,
        [&](const SampleChunk& chunk) {
          std::lock_guard lock(mutex);
          EXPECT_LT(chunk.thread, walk.threads);
          for (int64_t i = chunk.first; i < chunk.first + chunk.count; i++) worked[i]++;
        },
        [&](const SampleChunk& chunk) {
          EXPECT_EQ(chunk.first, next);
          next += chunk.count;
        }));
    EXPECT_EQ(next, walk.end);
    EXPECT_EQ(std::ssize(worked), walk.end - walk.begin);
    for (auto [sample, times] : worked) EXPECT_EQ(times, 1) << sample;
  }
}

TEST(SampleWalk, HasWorkForEveryThreadAndIsShortWhereSamplesAreLong) {
  EXPECT_EQ(walk_of(make(8, 100), 0, 4, 1 << 18).chunk, 25);
  EXPECT_EQ(walk_of(make(8, 100), 90, 4, 1 << 18).chunk, 3);
  EXPECT_EQ(walk_of(make(8, 5000), 0, 2, 1 << 18).chunk, 512);
  EXPECT_EQ(walk_of(make(1 << 12, 100), 0, 1, 1 << 18).chunk, 64);
  EXPECT_EQ(walk_of(make(1 << 12, 100), 0, 1, 2048).chunk, 1);
}

TEST(TokenCosts, AreTheSameWithAnyNumberOfThreads) {
  const Dataset data = make(32, 1000);
  std::map<int64_t, double> counts;
  for (int64_t id : some_ids(32'000)) counts[id]++;
  for (int64_t threads : {1, 2, 5}) {
    const auto costs = token_costs(data, kVocab, threads, [](int64_t) {}, {});
    ASSERT_TRUE(costs);
    for (size_t id = 0; id < static_cast<size_t>(kVocab); id++) {
      const double count = counts.contains(static_cast<int64_t>(id)) ? counts[static_cast<int64_t>(id)] : 0;
      EXPECT_DOUBLE_EQ((*costs)[id], count > 0 ? -std::log(count / 32'000) : 0) << id;
    }
  }
}

TEST(TokenCosts, StopBetweenRounds) {
  const Dataset data = make(32, 5000);
  int64_t counted = 0;
  EXPECT_FALSE(token_costs(data, kVocab, 1, [&](int64_t done) { counted = done; }, [&] { return counted > 0; }));
  EXPECT_EQ(counted, 512);
}

TEST(Fingerprint, DependsOnEveryTokenOfSmallData) {
  for (size_t count : {9u, 41u, 121u, 1000u}) {
    const std::vector<int64_t> ids = some_ids(static_cast<int64_t>(count));
    const auto fingerprint = [&](const std::vector<int64_t>& of) { return of_ids(8, of).fingerprint(); };
    const std::string plain = fingerprint(ids);
    for (size_t at = 0; at < (count - 1) / 8 * 8; at++) {
      std::vector<int64_t> other = ids;
      other[at] = (other[at] + 1) % kVocab;
      EXPECT_NE(fingerprint(other), plain) << at << " of " << count;
    }
  }
}

TEST(Fingerprint, DependsOnWhereDocumentsEnd) {
  const std::string plain = make(16, 40).fingerprint();
  EXPECT_EQ(make(16, 40).fingerprint(), plain);
  EXPECT_NE(make(16, 41).fingerprint(), plain);
  EXPECT_NE(make(16, 40, {100, 110, 641}).fingerprint(), plain);
  EXPECT_NE(make(16, 40, {100, 111, 641}).fingerprint(), make(16, 40, {100, 110, 641}).fingerprint());
}

}  // namespace
}  // namespace megalith

#include "data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"

namespace megalith {
namespace {

// Tokens count up: each token is its position in the stream.
std::vector<int64_t> counting(int64_t n, int64_t first = 0) {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TokenSources one(std::vector<int64_t> ids, std::string name = "a.txt") {
  TokenSources sources;
  if (!ids.empty()) sources.push_back(std::make_unique<MemorySource>(std::move(ids), std::move(name)));
  return sources;
}

struct Case {
  std::vector<int64_t> train = counting(1001), valid = {};
  int64_t sequence = 10;
  double fraction = 0;
  ObjectiveSettings objective = {};
  uint64_t seed = 1;
  int64_t batch = 1, vocab = 10'000;
  bool has_mask = true;
  Dataset make() const {
    DataSettings data;
    data.sequence = sequence;
    data.valid_fraction = fraction;
    VocabularyFacts vocabulary;
    vocabulary.vocab_size = vocab;
    if (has_mask) vocabulary.mask_token = 9999;
    return Dataset(one(train), one(valid, "valid.txt"), data, objective, vocabulary, seed, batch);
  }
};

std::string message(const Case& given) {
  try {
    given.make();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Dataset, AnEpochHasEveryTokenAsInputOnceAndEveryNextTokenAsTarget) {
  Dataset data = Case{}.make();
  ASSERT_EQ(data.samples(), 100);
  EXPECT_EQ(data.valid_sequences(), 0);
  EXPECT_EQ(data.train_tokens(), 1000);
  std::multiset<int64_t> inputs, targets;
  for (int64_t step = 0; step < 20; step++) {
    Batch batch = data.train_batch(step, 5);
    EXPECT_EQ(batch.sequences, 5);
    EXPECT_EQ(batch.length, 10);
    EXPECT_EQ(batch.first_sequence, 0);
    EXPECT_TRUE(batch.prefix.empty());
    for (size_t i = 0; i < batch.ids.size(); i++) EXPECT_EQ(batch.targets[i], batch.ids[i] + 1);
    inputs.insert(batch.ids.begin(), batch.ids.end());
    targets.insert(batch.targets.begin(), batch.targets.end());
  }
  const auto all = counting(1000), next = counting(1000, 1);
  EXPECT_TRUE(std::equal(inputs.begin(), inputs.end(), all.begin(), all.end()));
  EXPECT_TRUE(std::equal(targets.begin(), targets.end(), next.begin(), next.end()));
}

TEST(Dataset, BatchSizeDoesNotChangeTheSequenceOfSamplesAcrossEpochs) {
  for (Objective kind : {Objective::causal, Objective::masked, Objective::prefix}) {
    Case given;
    given.objective.kind = kind;
    Dataset data = given.make();
    Batch whole = data.train_batch(0, 252);  // two and a half epochs
    for (int64_t step = 0; step < 36; step++) {
      Batch part = data.train_batch(step, 7), expected = whole.slice(step * 7, 7);
      EXPECT_EQ(part.ids, expected.ids);
      EXPECT_EQ(part.targets, expected.targets);
      EXPECT_EQ(part.prefix, expected.prefix);
    }
  }
}

TEST(Dataset, EpochsAreMaskedAfresh) {
  Case given;
  given.train = counting(11);  // one sample
  given.objective.kind = Objective::masked;
  Dataset data = given.make();
  std::set<std::vector<int64_t>> masks;
  for (int64_t step = 0; step < 20; step++) masks.insert(data.train_batch(step, 1).targets);
  EXPECT_GT(masks.size(), 10u);
}

TEST(Dataset, SeedsGiveOtherOrders) {
  Case given, other;
  other.seed = 2;
  EXPECT_EQ(given.make().train_batch(3, 8).ids, given.make().train_batch(3, 8).ids);
  EXPECT_NE(given.make().train_batch(3, 8).ids, other.make().train_batch(3, 8).ids);
}

TEST(Dataset, HeldOutTokensAreNeverTrainedOn) {
  for (int64_t tokens : {22, 500, 1000, 1001, 1002, 1009}) {
    for (double fraction : {0.001, 0.1, 0.5}) {
      Case given;
      given.train = counting(tokens);
      given.fraction = fraction;
      Dataset data = given.make();
      const int64_t samples = (tokens - 2) / 10;
      EXPECT_EQ(data.valid_sequences(), std::max<int64_t>(1, std::llround(fraction * samples)));
      EXPECT_EQ(data.samples() + data.valid_sequences(), samples);
      Batch train = data.train_batch(0, data.samples()), valid = data.valid_batch(0, data.valid_sequences());
      // Tokens are positions: all tokens of validation are after all tokens of training.
      const int64_t last_trained = *std::ranges::max_element(train.targets);
      EXPECT_EQ(*std::ranges::min_element(valid.ids), last_trained + 1);
      EXPECT_LT(*std::ranges::max_element(valid.targets), tokens);
      EXPECT_GE(*std::ranges::max_element(valid.targets), tokens - 10);
    }
  }
}

TEST(Dataset, ValidationComesFromItsOwnSourcesWhenThereAreSome) {
  Case given;
  given.valid = counting(35, 5000);
  given.fraction = 0.5;  // has no effect then
  Dataset data = given.make();
  EXPECT_EQ(data.samples(), 100);
  ASSERT_EQ(data.valid_sequences(), 3);
  EXPECT_EQ(data.valid_batch(0, 2).ids, counting(20, 5000));
  Batch last = data.valid_batch(1, 2);
  EXPECT_EQ(last.sequences, 1);
  EXPECT_EQ(last.ids, counting(10, 5020));
  EXPECT_EQ(last.targets, counting(10, 5021));
  EXPECT_THROW(data.valid_batch(2, 2), Bug);
}

TEST(Dataset, ValidationMasksAreFixedAndDoNotDependOnTheBatch) {
  for (Objective kind : {Objective::masked, Objective::prefix}) {
    Case given;
    given.objective.kind = kind;
    given.fraction = 0.2;
    Dataset data = given.make();
    Batch whole = data.valid_batch(0, data.valid_sequences());
    for (int64_t index = 0; index < data.valid_sequences(); index++) {
      Batch single = data.valid_batch(index, 1), expected = whole.slice(index, 1);
      EXPECT_EQ(single.ids, expected.ids);
      EXPECT_EQ(single.targets, expected.targets);
      EXPECT_EQ(single.prefix, expected.prefix);
    }
    EXPECT_EQ(given.make().valid_batch(0, 20).targets, whole.targets);
  }
}

TEST(Dataset, TooLittleDataSaysHowMuchThereIsAndIsNeeded) {
  Case given;
  given.train = counting(40);
  given.batch = 4;
  EXPECT_EQ(message(given),
            "a.txt: data.train: expected at least 41 tokens for one batch (train.batch 4 x data.sequence "
            "10), got 40; "
            "use a smaller data.sequence or train.batch, or more text");
  given.train = {};
  EXPECT_NE(message(given).find("no data: data.train"), std::string::npos) << message(given);
}

TEST(Dataset, TheTokensSaidToBeNeededAreExactlyEnough) {
  for (double fraction : {0.0, 0.01, 0.3, 0.9}) {
    Case given;
    given.batch = 7;
    given.fraction = fraction;
    given.train = counting(5);
    const std::string text = message(given), lead = "at least ";
    const int64_t needed = std::stoll(text.substr(text.find(lead) + lead.size()));
    given.train = counting(needed);
    EXPECT_EQ(message(given), "no error");
    given.train = counting(needed - 1);
    EXPECT_NE(message(given), "no error") << fraction;
  }
}

TEST(Dataset, ValidationDataShorterThanASequenceIsRefused) {
  Case given;
  given.valid = counting(10);
  EXPECT_NE(message(given).find("valid.txt: data.valid: expected at least 11 tokens"), std::string::npos)
      << message(given);
}

TEST(Dataset, AnIdBeyondTheVocabularyIsNamedWithItsPosition) {
  for (int64_t bad : {int64_t{5000}, int64_t{-1}}) {
    Case given;
    given.train.assign(200'000, 1);
    given.vocab = 5000;
    given.objective.kind = Objective::causal;
    given.train[150'001] = bad;
    EXPECT_NE(message(given).find(fmt::format(
                  "a.txt: token 150001: expected an id below the vocabulary size (5000), got {}", bad)),
              std::string::npos)
        << message(given);
    given.train[150'001] = 4999;
    EXPECT_EQ(message(given), "no error");
    given.valid = counting(20, 4985);
    EXPECT_NE(message(given).find("valid.txt: token 15:"), std::string::npos) << message(given);
  }
}

namespace {

// A stream of any length that is never stored: each token is its position modulo the vocabulary size.
class EndlessSource final : public TokenSource {
 public:
  explicit EndlessSource(int64_t tokens, int64_t bad = -1) : tokens_(tokens), bad_(bad) {}
  int64_t tokens() const override { return tokens_; }
  void copy(int64_t begin, std::span<int64_t> out) const override {
    read_ += std::ssize(out);
    for (int64_t& id : out) {
      id = begin == bad_ ? 60'000 : begin % 50'000;
      begin++;
    }
  }
  int64_t document_end(int64_t position) const override {
    return std::min(tokens_, position / 100 * 100 + 100);
  }
  int64_t documents() const override { return (tokens_ + 99) / 100; }
  int64_t document_begin(int64_t document) const override { return std::min(tokens_, document * 100); }
  std::string name() const override { return "endless"; }
  static inline int64_t read_ = 0;

 private:
  int64_t tokens_, bad_;
};

Dataset endless(int64_t tokens, int64_t bad = -1) {
  DataSettings settings;
  settings.sequence = 100;
  settings.valid_fraction = 0.01;
  settings.attention = AttentionReach::document;
  VocabularyFacts vocabulary;
  vocabulary.vocab_size = 50'000;
  TokenSources sources;
  sources.push_back(std::make_unique<EndlessSource>(tokens, bad));
  return Dataset(std::move(sources), {}, settings, {}, vocabulary, 1, 1);
}

struct Blended {
  std::vector<int64_t> sizes;  // tokens of each set; set i counts up from 10'000 i
  std::vector<double> weights;
  double fraction = 0.1;
  int64_t sequence = 10;
  ObjectiveSettings objective = {};
  Dataset make() const {
    DataSettings data;
    data.sequence = sequence;
    data.valid_fraction = fraction;
    VocabularyFacts vocabulary;
    vocabulary.vocab_size = 100'000;
    vocabulary.mask_token = 99'999;
    std::vector<TrainingSet> sets;
    for (size_t i = 0; i < sizes.size(); i++)
      sets.push_back(
          {one(counting(sizes[i], 10'000 * static_cast<int64_t>(i)), fmt::format("{}.txt", i)), weights[i]});
    return Dataset(std::move(sets), {}, data, objective, vocabulary, 1, 8);
  }
};

}  // namespace

TEST(Dataset, ATrillionSamplesAreAsNearAsTen) {
  EndlessSource::read_ = 0;
  Dataset data = endless(100'000'000'000'000);  // 10^12 samples of 100
  EXPECT_LT(EndlessSource::read_, 50'000'000) << "a start that reads everything";
  EXPECT_NEAR(static_cast<double>(data.samples()), 0.99e12, 1e6);
  EndlessSource::read_ = 0;
  for (int64_t step : {int64_t{0}, int64_t{1'000'000}, int64_t{1'000'000'000'000}}) {
    Batch batch = data.train_batch(step, 4);
    EXPECT_EQ(batch.ids.size(), 400u);
  }
  EXPECT_EQ(EndlessSource::read_, 3 * 4 * 101) << "a step reads its own tokens alone, wherever it is";
}

TEST(Dataset, ABadIdThatTheStartDidNotSeeIsNamedWhenItIsUsed) {
  const int64_t tokens = 100'000'000, bad = 70'003;  // between two places that the constructor checks
  Dataset data = endless(tokens, bad);
  // Finds the step that uses it by search, as the order is a permutation.
  std::string said;
  const int64_t sample = bad / 100;
  SampleOrder order(data.samples(), 1);
  for (int64_t position = 0; position < data.samples(); position++) {
    if (order.at(position).sample != sample) continue;
    try {
      data.train_batch(position, 1);
    } catch (const UserError& error) {
      said = error.what();
    }
    break;
  }
  EXPECT_NE(said.find("endless: token 70003: expected an id below the vocabulary size (50000), got 60000"),
            std::string::npos)
      << said;
}

// Rank r of R takes 1/R of every step's batch.
TEST(Dataset, TheOrderIsTheSameForAnyNumberOfRanks) {
  for (Objective kind : {Objective::causal, Objective::masked, Objective::prefix}) {
    Blended given{{1001, 2001}, {0.3, 0.7}};
    given.objective.kind = kind;
    Dataset alone = given.make();
    for (int64_t ranks : {1, 2, 3, 4, 6, 12}) {
      std::vector<std::unique_ptr<Dataset>> each;
      for (int64_t rank = 0; rank < ranks; rank++) each.emplace_back(new Dataset(given.make()));
      for (int64_t step : {0, 1, 57, 1'000'000}) {
        const Batch whole = alone.train_batch(step, 12);
        std::vector<int64_t> ids, targets;
        for (int64_t rank = 0; rank < ranks; rank++) {
          const Batch part =
              each[static_cast<size_t>(rank)]->train_batch(step, 12).slice(rank * 12 / ranks, 12 / ranks);
          ids.insert(ids.end(), part.ids.begin(), part.ids.end());
          targets.insert(targets.end(), part.targets.begin(), part.targets.end());
        }
        EXPECT_EQ(ids, whole.ids);
        EXPECT_EQ(targets, whole.targets);
      }
    }
  }
}

TEST(Dataset, BlendedSetsHaveEpochsOfTheirOwnWithEachSampleOnce) {
  const Blended given{{1001, 501, 2001}, {0.5, 0.3, 0.2}, 0.0};
  Dataset data = given.make();
  EXPECT_EQ(data.samples(), 100 + 50 + 200);
  std::vector<std::vector<int64_t>> seen(3);  // samples in the order of their use, by set
  const int64_t steps = 300;
  for (int64_t step = 0; step < steps; step++) {
    const Batch batch = data.train_batch(step, 10);
    for (int64_t row = 0; row < 10; row++) {
      const int64_t first = batch.ids[row * 10];
      seen[first / 10'000].push_back(first % 10'000 / 10);
    }
  }
  const auto epochs = data.epochs_after(steps, 10);
  for (size_t set = 0; set < 3; set++) {
    EXPECT_NEAR(static_cast<double>(seen[set].size()) / 3000, given.weights[set], 0.01 * given.weights[set]);
    const size_t samples = static_cast<size_t>((given.sizes[set] - 1) / 10);
    EXPECT_DOUBLE_EQ(epochs[set], static_cast<double>(seen[set].size()) / static_cast<double>(samples));
    for (size_t begin = 0; begin + samples <= seen[set].size(); begin += samples) {
      std::set<int64_t> epoch(seen[set].begin() + begin, seen[set].begin() + begin + samples);
      EXPECT_EQ(epoch.size(), samples) << "set " << set;
      EXPECT_TRUE(begin == 0 ||
                  !std::equal(seen[set].begin(), seen[set].begin() + samples, seen[set].begin() + begin))
          << "the same order again";
    }
  }
}

TEST(Dataset, HeldOutTokensAreNeverTrainedOnWhenBlended) {
  for (double fraction : {0.001, 0.1, 0.5}) {
    Blended given{{1001, 502, 2009}, {5, 1, 1}, fraction};
    Dataset data = given.make();
    std::set<int64_t> trained, held;
    for (int64_t step = 0; step < 400; step++) {
      const Batch batch = data.train_batch(step, 10);
      trained.insert(batch.ids.begin(), batch.ids.end());
      trained.insert(batch.targets.begin(), batch.targets.end());
    }
    const Batch valid = data.valid_batch(0, data.valid_sequences());
    held.insert(valid.ids.begin(), valid.ids.end());
    EXPECT_EQ(held.size(), valid.ids.size()) << "a held-out token twice";
    held.insert(valid.targets.begin(), valid.targets.end());
    std::vector<int64_t> both;
    std::ranges::set_intersection(trained, held, std::back_inserter(both));
    EXPECT_TRUE(both.empty()) << both.size() << " tokens";
    for (int64_t set : {0, 1, 2})
      EXPECT_TRUE(std::ranges::any_of(held, [&](int64_t id) { return id / 10'000 == set; }))
          << "none of set " << set;
  }
}

TEST(Dataset, ASetThatIsTooSmallToBlendIsNamed) {
  Blended given{{1001, 10}, {1, 1}, 0.0};
  try {
    given.make();
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "1.txt: data.train: expected at least 11 tokens for one sequence (data.sequence 10), got 10; use a "
        "smaller data.sequence or train.batch, or more text");
  }
  given.sizes[1] = 11;  // less than a batch is enough, as the set is repeated
  EXPECT_EQ(given.make().train_batch(0, 8).sequences, 8);
}

TEST(Dataset, EpochsAreCounted) {
  Dataset data = Case{}.make();  // 100 samples
  EXPECT_EQ(data.epochs_after(0, 5), std::vector{0.0});
  EXPECT_EQ(data.epochs_after(10, 5), std::vector{0.5});
  EXPECT_EQ(data.epochs_after(50, 5), std::vector{2.5});
}

TEST(Dataset, TheMaskedObjectiveNeedsAMaskToken) {
  Case given;
  given.objective.kind = Objective::masked;
  given.has_mask = false;
  EXPECT_NE(message(given).find("mask token"), std::string::npos);
}

}  // namespace megalith

#include "analysis/difficulties.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/error.h"
#include "temp_dir.h"

namespace megalith {
namespace {

constexpr int64_t kSequence = 32, kSamples = 5000, kTokens = kSequence * kSamples;

// A token source that counts the tokens read from it. After `stop_at` tokens it raises SIGINT, as Ctrl-C does.
class WatchedSource final : public TokenSource {
 public:
  WatchedSource(int64_t& read, int64_t& stop_at) : read_(read), stop_at_(stop_at) {}
  int64_t tokens() const override { return kTokens + 1; }
  void copy(int64_t begin, std::span<int64_t> out) const override {
    for (size_t i = 0; i < out.size(); i++) out[i] = (begin + static_cast<int64_t>(i)) % 97 % 10;
    const bool stops = read_ < stop_at_;
    read_ += std::ssize(out);
    if (stops && read_ >= stop_at_) std::raise(SIGINT);
  }
  int64_t document_end(int64_t) const override { return tokens(); }
  int64_t documents() const override { return 1; }
  int64_t document_begin(int64_t document) const override { return document == 0 ? 0 : tokens(); }
  std::string name() const override { return "watched"; }

 private:
  int64_t &read_, &stop_at_;
};

class DifficultiesTest : public testing::Test {
 protected:
  DifficultiesTest() {
    Config& config = run_.config;
    config.train.threads = 1;
    config.data.sequence = kSequence;
    config.data.valid_fraction = 0;
    TokenSources sources;
    sources.push_back(std::make_unique<WatchedSource>(read_, stop_at_));
    VocabularyFacts vocabulary;
    vocabulary.vocab_size = 10;
    data_ = std::make_unique<Dataset>(std::move(sources), TokenSources{}, config.data, config.objective, vocabulary, 1, 1);
  }
  const TempDir folder_;
  const RunDirectory directory_{folder_.path() / "run"};
  megalith::Run run_{.shapes = StepShapes(1, kSequence)};
  int64_t read_ = 0, stop_at_ = 0;
  std::unique_ptr<Dataset> data_;
};

TEST_F(DifficultiesTest, CountTokensOnceForAllMetrics) {
  Difficulties difficulties(run_, directory_, *data_);
  auto read_for = [&](const char* metric) {
    const int64_t before = read_;
    EXPECT_EQ(std::ssize(difficulties.of({metric, "", ""}).values), kSamples);
    return read_ - before;
  };
  EXPECT_EQ(read_for("rarity"), 2 * kTokens);  // one pass counts the tokens, a second pass sums them up
  EXPECT_EQ(read_for("length_rarity"), kTokens);
  EXPECT_EQ(read_for("rarity"), 0);
}

TEST_F(DifficultiesTest, StopWhileTokensAreCountedAndWhileValuesAreComputed) {
  const std::pair<double, const char*> stops[] = {{0.3, "stopped while counting tokens"},
                                                  {1.3, "stopped after 1536 of 5000"}};
  for (const auto& [after, said] : stops) {
    Difficulties difficulties(run_, directory_, *data_);
    const int64_t before = read_;
    stop_at_ = before + static_cast<int64_t>(after * static_cast<double>(kTokens));
    try {
      difficulties.of({"rarity", "", ""});
      ADD_FAILURE() << "not stopped";
    } catch (const Interrupted& interrupted) {
      EXPECT_EQ(std::string(interrupted.what()).find(said), 0u) << interrupted.what();
    }
    EXPECT_LT(read_ - stop_at_, 512 * kSequence) << "no more than the chunk at work";
  }
  Difficulties again(run_, directory_, *data_);
  const int64_t before = read_;
  again.of({"rarity", "", ""});
  EXPECT_EQ(read_ - before, kTokens + (kSamples - 1536) * kSequence) << "counts anew, then goes on";
}

}  // namespace
}  // namespace megalith

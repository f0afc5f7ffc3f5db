#include "text/bpe_trainer.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/byte_alphabet.h"
#include "text/gpt2_split.h"
#include "text/word_counts.h"
#include "text_testing.h"

namespace megalith {
namespace {

using nlohmann::json;

// BPE by definition: counts all pairs again for every merge.
json naive_merges(const std::string& text, const json& vocab, size_t count) {
  Gpt2Splitter splitter;
  std::map<std::vector<std::string>, int64_t> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = splitter.word_end(text, at);
    std::vector<std::string> symbols;
    for (; at < end; at++) symbols.push_back(to_byte_alphabet(text.substr(at, 1)));
    words[symbols]++;
  }
  json merges = json::array();
  while (merges.size() < count) {
    std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, std::vector<std::string>>>
        pairs;  // sorted by ids, lowest first
    for (const auto& [symbols, n] : words)
      for (size_t i = 0; i + 1 < symbols.size(); i++) {
        auto& entry = pairs[{vocab[symbols[i]], vocab[symbols[i + 1]]}];
        entry.first += n;
        entry.second = {symbols[i], symbols[i + 1]};
      }
    auto best = std::max_element(pairs.begin(), pairs.end(),
                                 [](auto& a, auto& b) { return a.second.first < b.second.first; });
    if (best == pairs.end()) break;
    const auto pair = best->second.second;
    merges.push_back(pair);
    std::map<std::vector<std::string>, int64_t> joined;
    for (const auto& [symbols, n] : words) {
      std::vector<std::string> out;
      for (size_t i = 0; i < symbols.size(); i++) {
        if (i + 1 < symbols.size() && symbols[i] == pair[0] && symbols[i + 1] == pair[1])
          out.push_back(pair[0] + symbols[++i]);
        else
          out.push_back(symbols[i]);
      }
      joined[out] += n;
    }
    words = std::move(joined);
  }
  return merges;
}

TEST(BpeTrainer, LearnsWhatTheDefinitionSays) {
  Folder folder;
  for (uint64_t seed : {1, 2, 3}) {
    std::string text = made_up_text(1500, seed) + std::string(40, 'a') + std::string(31, '=');
    json learnt = parse_json(train_bpe({folder.write("t.txt", text)}, 400));
    ASSERT_EQ(learnt["model"]["merges"].size(), 400u - 257u);
    EXPECT_EQ(learnt["model"]["merges"], naive_merges(text, learnt["model"]["vocab"], 400 - 257));
  }
}

TEST(BpeTrainer, TheResultDependsNeitherOnThreadsNorOnPieces) {
  Folder folder;
  auto a = folder.write("a.txt", made_up_text(20000, 1)), b = folder.write("b.txt", made_up_text(20000, 2));
  BpeTrainerOptions one{.threads = 1, .corpus = {}}, many{.threads = 5, .corpus = {.piece_bytes = 3000}};
  std::string expected = train_bpe({a, b}, 1000, {}, {}, one);
  EXPECT_EQ(train_bpe({a, b}, 1000, {}, {}, many), expected);
  EXPECT_EQ(train_bpe({b, a}, 1000, {}, {}, many), expected) << "order of the files";
}

TEST(BpeTrainer, CountsThatGoToDiskGiveTheSameVocabulary) {
  Folder folder;
  auto a = folder.write("a.txt", made_up_text(20000, 1)), b = folder.write("b.txt", made_up_text(20000, 2));
  BpeTrainerOptions plenty, little;
  little.threads = 3;
  little.word_memory = 9000;  // a few dozen words per thread
  little.corpus.piece_bytes = 2000;
  EXPECT_EQ(train_bpe({a, b}, 1000, {}, {}, little), train_bpe({a, b}, 1000, {}, {}, plenty));
}

TEST(BpeTrainer, WordsAreToldOnceInOrderWhateverTheMemory) {
  Folder folder;
  auto file = folder.write("a.txt", made_up_text(5000));
  auto told = [&](int64_t memory) {
    std::vector<std::pair<std::string, int64_t>> words;
    CorpusOptions options;
    options.piece_bytes = 1000;
    count_words(
        {file}, options, {}, {2, memory}, [](int64_t) {},
        [&](std::string_view word, int64_t count) { words.emplace_back(word, count); });
    return words;
  };
  auto words = told(1 << 20);
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
  EXPECT_EQ(told(0), words);  // the counts of every piece go to disk
  int64_t bytes = 0;
  for (const auto& [word, count] : words) bytes += static_cast<int64_t>(word.size()) * count;
  EXPECT_EQ(bytes, static_cast<int64_t>(std::filesystem::file_size(file)));
}

TEST(BpeTrainer, SpecialTokensComeFirstAndAreNotLearntFromTheText) {
  Folder folder;
  std::string text = made_up_text(500), separated;
  for (int i = 0; i < 200; i++)
    separated += "<|endoftext|>" + text.substr(static_cast<size_t>(i), 5) + "[MASK]";
  auto tokenizer =
      parse_tokenizer_json(train_bpe({folder.write("t.txt", separated)}, 300, {"[MASK]"}), "trained");
  EXPECT_EQ(tokenizer->id_of("<|endoftext|>"), 0);
  EXPECT_EQ(tokenizer->id_of("[MASK]"), 1);
  EXPECT_EQ(tokenizer->mask_token(), 1);
  EXPECT_FALSE(tokenizer->id_of("<|") || tokenizer->id_of("MA"));
}

TEST(BpeTrainer, ATextTooSmallGivesASmallerVocabulary) {
  Folder folder;
  auto tokenizer = parse_tokenizer_json(train_bpe({folder.write("t.txt", "aaaa")}, 1000), "trained");
  EXPECT_EQ(tokenizer->vocab_size(), 257 + 2);
  EXPECT_EQ(tokenizer->encode("aaaa").size(), 1u);
}

TEST(BpeTrainer, AVocabularyWithoutRoomForTheBytesIsRefused) {
  Folder folder;
  auto file = folder.write("t.txt", "text");
  EXPECT_SAYS(user_error([&] { train_bpe({file}, 200); }),
              "expected at least 257 tokens (256 bytes and 1 special tokens), got 200");
  EXPECT_SAYS(user_error([&] { train_bpe({file}, 300, {"x"}); }),
              "special token: expected two characters or more");
}

TEST(BpeTrainer, TellsHowFarItIs) {
  Folder folder;
  std::vector<std::string> phases;
  double last = 0;
  train_bpe({folder.write("t.txt", made_up_text(2000))}, 500, {}, [&](const std::string& phase, double done) {
    phases.push_back(phase);
    last = done;
  });
  EXPECT_EQ(phases.back(), "merge");
  EXPECT_EQ(last, 1.0);
}

}  // namespace
}  // namespace megalith

#include "text/bpe_trainer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_json.h"
#include "text/word_counts.h"

namespace megalith {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

// Reports progress at most five times a second.
class Reporter {
 public:
  explicit Reporter(const BpeProgress& progress) : progress_(progress) {}
  void report(const char* phase, double done) {
    auto now = std::chrono::steady_clock::now();
    if (!progress_ || (now - last_ < std::chrono::milliseconds(200) && done < 1)) return;
    last_ = now;
    progress_(phase, std::min(done, 1.0));
  }

 private:
  const BpeProgress& progress_;
  std::chrono::steady_clock::time_point last_{};
};

using Pair = uint64_t;  // left id << 32 | right id: orders like (left, right)
Pair pair_of(TokenId left, TokenId right) {
  return static_cast<Pair>(left) << 32 | static_cast<uint32_t>(right);
}

// The words of a corpus as symbols, and the counts of neighbouring pairs. The counts stay up to date while pairs are
// joined.
class PairCounts {
 public:
  explicit PairCounts(const std::array<TokenId, 256>& byte_ids) : byte_ids_(byte_ids) {}

  // Add all words before the first pop.
  void add(std::string_view text, int64_t count) {
    auto w = static_cast<uint32_t>(words_.size());
    words_.push_back({symbols_.size(), static_cast<uint32_t>(text.size()), count});
    for (char c : text) symbols_.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    const TokenId* symbols = symbols_.data() + words_.back().begin;
    for (size_t i = 0; i + 1 < text.size(); i++) change(pair_of(symbols[i], symbols[i + 1]), count, w);
  }

  // Sets `pair` to the most frequent pair, or the lowest one of equally frequent pairs. Returns false if no pair is
  // left.
  bool pop(Pair& pair) {
    push_risen();
    while (!queue_.empty()) {
      Candidate top = queue_.top();
      queue_.pop();
      int64_t count = pairs_[top.pair].count;
      if (count == top.count && count > 0) {
        pair = top.pair;
        return true;
      }
      // the count has changed since: queue the pair again with its current count
      if (count > 0) queue_.push({count, top.pair});
    }
    return false;
  }

  // Joins a pair in all words.
  void join(Pair pair, TokenId joined) {
    auto left = static_cast<TokenId>(pair >> 32), right = static_cast<TokenId>(pair & 0xFFFFFFFF);
    std::vector<uint32_t> where = std::move(pairs_[pair].words);
    for (uint32_t w : where) join_in(w, left, right, joined);
    pairs_.erase(pair);
  }

 private:
  struct Word {
    size_t begin;  // in symbols_
    uint32_t size;
    int64_t count;
  };
  struct Statistics {
    int64_t count = 0;
    std::vector<uint32_t> words;  // words that contain the pair, or contained it earlier
  };
  struct Candidate {
    int64_t count;
    Pair pair;
    bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : pair > o.pair; }
  };

  void change(Pair pair, int64_t by, uint32_t word) {
    Statistics& statistics = pairs_[pair];
    statistics.count += by;
    if (by <= 0) return;
    if (statistics.words.empty() || statistics.words.back() != word) statistics.words.push_back(word);
    risen_.insert(pair);
  }
  void push_risen() {
    for (Pair pair : risen_) queue_.push({pairs_[pair].count, pair});
    risen_.clear();
  }
  void join_in(uint32_t w, TokenId left, TokenId right, TokenId joined) {
    TokenId* symbols = symbols_.data() + words_[w].begin;
    const size_t size = words_[w].size;
    int64_t count = words_[w].count;
    size_t to = 0;
    for (size_t from = 0; from < size; to++) {
      if (from + 1 == size || symbols[from] != left || symbols[from + 1] != right) {
        symbols[to] = symbols[from++];
        continue;
      }
      if (to > 0) {
        change(pair_of(symbols[to - 1], left), -count, w);
        change(pair_of(symbols[to - 1], joined), count, w);
      }
      if (from + 2 < size) {
        change(pair_of(right, symbols[from + 2]), -count, w);
        change(pair_of(joined, symbols[from + 2]), count, w);
      }
      symbols[to] = joined;
      from += 2;
    }
    words_[w].size = static_cast<uint32_t>(to);
  }

  std::array<TokenId, 256> byte_ids_;
  std::vector<TokenId> symbols_;  // of all words, concatenated
  std::vector<Word> words_;
  std::unordered_map<Pair, Statistics> pairs_;
  std::unordered_set<Pair> risen_;  // pairs whose count has grown since they were queued
  std::priority_queue<Candidate> queue_;
};

std::vector<std::string> checked_specials(const std::vector<std::string>& asked) {
  std::vector<std::string> specials;
  if (std::find(asked.begin(), asked.end(), kEndOfText) == asked.end()) specials.push_back(kEndOfText);
  for (const std::string& token : asked) {
    if (token.empty() || code_point_at(token, 0).bytes == token.size())
      throw UserError(
          {"", "special token", "two characters or more", '"' + token + '"', "use a longer text, such as [MASK]"});
    if (std::find(specials.begin(), specials.end(), token) == specials.end()) specials.push_back(token);
  }
  return specials;
}

}  // namespace

std::string train_bpe(const std::vector<std::filesystem::path>& files, int64_t vocab,
                      const std::vector<std::string>& special_tokens, const BpeProgress& progress,
                      const BpeTrainerOptions& options) {
  using nlohmann::json;
  std::vector<std::string> specials = checked_specials(special_tokens);
  int64_t least = 256 + static_cast<int64_t>(specials.size());
  if (vocab < least)
    throw UserError({"", "tokenizer vocabulary",
                     fmt::format("at least {} tokens (256 bytes and {} special tokens)", least, specials.size()),
                     std::to_string(vocab), "use 4096 for a small text, 32000 for a large one"});
  Reporter reporter(progress);
  auto bytes_total = static_cast<double>(std::max<int64_t>(1, stored_bytes(files)));

  json ids = json::object(), merges = json::array(), added = json::array();
  std::vector<std::string> names;  // in the byte alphabet
  auto add = [&](const std::string& name) {
    auto id = static_cast<TokenId>(names.size());
    auto [entry, is_new] = ids.emplace(name, id);
    if (is_new) names.push_back(name);
    return entry->get<TokenId>();
  };
  for (const std::string& token : specials) added.push_back(added_token_json(add(token), token));
  std::array<int, 256> bytes_in_order;  // sorted by their character
  for (int b = 0; b < 256; b++) bytes_in_order[static_cast<size_t>(b)] = b;
  std::sort(bytes_in_order.begin(), bytes_in_order.end(), [](int a, int b) {
    return kByteToChar[static_cast<size_t>(a)] < kByteToChar[static_cast<size_t>(b)];
  });
  std::array<TokenId, 256> byte_ids;
  for (int b : bytes_in_order)
    byte_ids[static_cast<size_t>(b)] = add(to_byte_alphabet(std::string(1, static_cast<char>(b))));

  PairCounts pairs(byte_ids);
  count_words(
      files, options.corpus, specials, {options.threads, options.word_memory},
      [&](int64_t bytes) { reporter.report("count", static_cast<double>(bytes) / bytes_total); },
      [&](std::string_view word, int64_t count) { pairs.add(word, count); });
  Pair best = 0;
  while (static_cast<int64_t>(names.size()) < vocab && pairs.pop(best)) {
    const std::string left = names[best >> 32], right = names[best & 0xFFFFFFFF];
    merges.push_back({left, right});
    pairs.join(best, add(left + right));
    reporter.report("merge", static_cast<double>(names.size()) / static_cast<double>(vocab));
  }
  if (static_cast<int64_t>(names.size()) < vocab)
    log::warn("the text is too small for this vocabulary: it gives {} tokens instead of {}",
              names.size(), vocab);
  reporter.report("merge", 1);

  json file = tokenizer_file_json(bpe_json(std::move(ids), std::move(merges)), added);
  file["pre_tokenizer"] = byte_level_json(false);
  file["decoder"] = byte_level_json(true);
  return print_json(file);
}

}  // namespace megalith

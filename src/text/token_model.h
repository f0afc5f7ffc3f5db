// The part of a tokenizer that owns a vocabulary: turns one word into ids.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/word_cache.h"

namespace megalith {

struct Component;

inline constexpr int64_t kLargestVocab = 1 << 24;  // rejects absurd files before they use memory

struct StringHash {  // allows to search a map of strings with a string_view
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using StringToId = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a word. Thread-safe; short words are cached (word_cache.h).
  virtual void encode_word(std::string_view word, std::vector<TokenId>& ids) const {
    encode_cached(word, ids);
  }

 protected:
  void encode_cached(std::string_view word, std::vector<TokenId>& ids) const {
    if (word.size() > WordCache::kLongestWord) return encode_new(word, nullptr, {0, {}}, ids);
    WordCache::Key key(owner_, word);
    WordCache::Entry& entry = WordCache::of_this_thread().slot(key);
    if (!entry.holds(key)) return encode_new(word, &entry, key, ids);
    if (entry.count == 1)
      ids.push_back(entry.ids[0]);
    else
      ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
  }
  // Sets `ids` to the ids of a word that is not in the cache.
  virtual void compute(std::string_view word, std::vector<TokenId>& ids) const = 0;

 private:
  // Computes the ids of a word, appends them, and caches them in `entry` unless it is null.
  void encode_new(std::string_view word, WordCache::Entry* entry, const WordCache::Key& key,
                  std::vector<TokenId>& ids) const;

  uint32_t owner_ = WordCache::new_owner();
};

// Reads the vocabulary of a model. Token names stay as written in the file.
StringToId read_vocab(const Component& component);

// Supports BPE, WordPiece and Unigram. `vocab` is the result of read_vocab. A byte-level model takes words as raw
// bytes.
std::unique_ptr<TokenModel> read_model(const Component& component, const StringToId& vocab,
                                       const PreTokenizerTraits& traits);

}  // namespace megalith

// Remembers the ids of frequent short words. One fixed-size table a thread, shared by all tokenizers: no
// locks, no growth, nothing to free when a tokenizer goes.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "text/tokenizer.h"

namespace megalith {

class WordCache {
 public:
  static constexpr size_t kLongestWord = 26, kMostIds = 8;

  static WordCache& of_this_thread() {
    thread_local WordCache cache;
    return cache;
  }
  // A number no other tokenizer has; 0 is never given out.
  static uint32_t new_owner() {
    static std::atomic<uint32_t> next{1};
    return next++;
  }

  struct Entry {  // one cache line
    uint32_t owner = 0;
    uint8_t length = 0, count = 0;
    std::array<char, kLongestWord> word;
    std::array<TokenId, kMostIds> ids;
    bool holds(uint32_t who, std::string_view text) const {
      return owner == who && length == text.size() && std::memcmp(word.data(), text.data(), text.size()) == 0;
    }
  };
  static_assert(sizeof(Entry) == 64);

  // The only place where this word can be. Words longer than kLongestWord have none: do not ask.
  Entry& slot(uint32_t owner, std::string_view word) { return entries_[hash(owner, word) >> (64 - kBits)]; }

  static void fill(Entry& entry, uint32_t owner, std::string_view word, std::span<const TokenId> ids) {
    if (ids.size() > kMostIds) return;
    entry.owner = owner;
    entry.length = static_cast<uint8_t>(word.size());
    entry.count = static_cast<uint8_t>(ids.size());
    std::memcpy(entry.word.data(), word.data(), word.size());
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
  }

 private:
  static constexpr int kBits = 15;  // 2 MiB a thread

  static uint64_t hash(uint32_t owner, std::string_view word) {
    uint64_t h = owner * 0x9E3779B97F4A7C15ull + word.size();
    const char* at = word.data();
    size_t left = word.size();
    for (; left >= 8; at += 8, left -= 8) {
      uint64_t bytes;
      std::memcpy(&bytes, at, 8);
      h = (h ^ bytes) * 0xFF51AFD7ED558CCDull;
      h ^= h >> 32;
    }
    uint64_t rest = 0;
    std::memcpy(&rest, at, left);
    h = (h ^ rest) * 0xC4CEB9FE1A85EC53ull;
    return (h ^ h >> 29) * 0xFF51AFD7ED558CCDull;
  }

  std::unique_ptr<Entry[]> entries_ = std::make_unique<Entry[]>(size_t{1} << kBits);
};

}  // namespace megalith

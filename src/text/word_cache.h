// Caches the ids of frequent short words. Each thread has one table of fixed size, which all tokenizers share. So it
// needs no locks, does not grow, and frees nothing when a tokenizer is destroyed.
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
  static constexpr size_t kLongestWord = 24, kMostIds = 8;

  static WordCache& of_this_thread() {
    thread_local WordCache cache;
    return cache;
  }
  // Returns a number that no other tokenizer has. Never returns 0.
  static uint32_t new_owner() {
    static std::atomic<uint32_t> next{1};
    return next++;
  }

  // The bytes of a word as three 64-bit integers, padded with zeros. Hashing and comparing them needs no loops or
  // calls.
  struct Key {
    uint64_t a, b, c;
    uint32_t owner;
    uint16_t length;
    // `word` has at most kLongestWord bytes.
    Key(uint32_t who, std::string_view word)
        : a(load(word.data(), word.size())),
          b(word.size() > 8 ? load(word.data() + 8, word.size() - 8) : 0),
          c(word.size() > 16 ? load(word.data() + 16, word.size() - 16) : 0),
          owner(who),
          length(static_cast<uint16_t>(word.size())) {}
    uint64_t hash() const {
      uint64_t h = (a ^ (uint64_t{owner} << 32 | length)) * 0x9E3779B97F4A7C15ull;
      h = (h ^ h >> 32 ^ b) * 0xFF51AFD7ED558CCDull;
      h = (h ^ h >> 32 ^ c) * 0xC4CEB9FE1A85EC53ull;
      return h;
    }

   private:
    // Loads min(size, 8) bytes without reading beyond them.
    static uint64_t load(const char* from, size_t size) {
      auto bytes = [&](auto value, size_t at) {
        std::memcpy(&value, from + at, sizeof value);
        return uint64_t{value};
      };
      if (size >= 8) return bytes(uint64_t{}, 0);
      if (size >= 4) return bytes(uint32_t{}, 0) | bytes(uint32_t{}, size - 4) << 8 * (size - 4);
      if (size == 0) return 0;
      return bytes(uint8_t{}, 0) | bytes(uint8_t{}, size / 2) << 8 * (size / 2) |
             bytes(uint8_t{}, size - 1) << 8 * (size - 1);
    }
  };
  struct alignas(64) Entry {  // one cache line
    uint64_t a = 0, b = 0, c = 0;
    uint32_t owner = 0;
    uint16_t length = 0, count = 0;
    std::array<TokenId, kMostIds> ids;

    bool holds(const Key& key) const {
      return a == key.a && b == key.b && c == key.c && owner == key.owner && length == key.length;
    }
    void fill(const Key& key, std::span<const TokenId> found) {
      if (found.size() > kMostIds) return;
      a = key.a;
      b = key.b;
      c = key.c;
      owner = key.owner;
      length = key.length;
      count = static_cast<uint16_t>(found.size());
      std::copy(found.begin(), found.end(), ids.begin());
    }
  };
  static_assert(sizeof(Entry) == 64);

  // Returns the only entry that can contain this word.
  Entry& slot(const Key& key) { return entries_[key.hash() >> (64 - kBits)]; }

 private:
  static constexpr int kBits = 15;  // 2 MiB per thread

  std::unique_ptr<Entry[]> entries_ = std::make_unique<Entry[]>(size_t{1} << kBits);
};

}  // namespace megalith

// A value in memory that one thread writes and another process reads, without locks. The reader gets a consistent value.
// If the writer was stopped in the middle of a write, the reader gets a mix of old and new words.
#pragma once
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace megalith::launch {

template <class T>
class Published {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint64_t) == 0);
  static constexpr size_t kWords = sizeof(T) / sizeof(uint64_t);

 public:
  void write(const T& value) {
    std::array<uint64_t, kWords> words;
    std::memcpy(words.data(), &value, sizeof value);
    const uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);  // odd: being written
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < kWords; i++) words_[i].store(words[i], std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
  }

  T read() const {
    std::array<uint64_t, kWords> words;
    for (int attempt = 0; attempt < 300; attempt++) {
      if (attempt >= 100) ::usleep(100);  // the writer is not running now
      const uint64_t before = version_.load(std::memory_order_acquire);
      for (size_t i = 0; i < kWords; i++) words[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
    }
    T value;
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof value);
    return value;
  }

 private:
  std::atomic<uint64_t> version_{0};
  std::array<std::atomic<uint64_t>, kWords> words_{};
};

}  // namespace megalith::launch

// Writes bytes to files in the background. It copies the bytes, and threads that sleep in disk calls write them without
// the page cache.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/file_handle.h"

namespace megalith {

// The bytes are copied because direct I/O needs aligned memory, and tensors may be unaligned. With a copy, the caller can
// also continue at once. The page cache would copy as well, and it would allocate pages and evict others. Thread-safe on
// disjoint ranges.
class WriteBehind {
 public:
  WriteBehind();
  ~WriteBehind();  // waits for writes in flight
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // Returns when `bytes` may change. The file must stay open until the next wait(). Throws the first Fault of any file,
  // after all writes in flight have ended.
  void write(FileHandle& file, int64_t offset, std::span<const std::byte> bytes);
  // Waits until everything is written, or given up because of a Fault. The data is durable only after sync().
  void wait() noexcept;
  void check();  // throws the first Fault

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Piece {
    FileHandle* file = nullptr;
    int64_t offset = 0;
    size_t length = 0;
    std::byte* buffer = nullptr;
  };
  std::byte* take_buffer();
  bool idle() const { return todo_.empty() && writing_ == 0; }
  void run();

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::unique_ptr<std::byte[], Free> memory_;
  std::vector<std::byte*> free_;  // buffers in memory_
  std::deque<Piece> todo_;
  int writing_ = 0;  // number of threads that write now
  bool stop_ = false;
  std::string fault_;  // the first one
  std::vector<std::thread> threads_;  // last, as they use all members above
};

}  // namespace megalith

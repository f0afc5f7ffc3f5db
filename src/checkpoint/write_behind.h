// Bytes on their way to files: taken over by copy, written past the page cache by threads that sleep in the disk.
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

// Why a copy: direct I/O wants aligned memory, tensors lie where they lie; and whoever saves may go on, while the page
// cache would have copied as well, found pages for it, and pushed out others. Thread-safe on disjoint ranges.
class WriteBehind {
 public:
  WriteBehind();
  ~WriteBehind();  // waits for what is in flight
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // Returns when `bytes` may change; the file stays open until the next wait(). Throws the first Fault of
  // any file, when nothing is in flight any more.
  void write(FileHandle& file, int64_t offset, std::span<const std::byte> bytes);
  // Until all that was handed over is written, or given up because of a Fault. Durable is another matter: sync().
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
  int writing_ = 0;  // threads that write
  bool stop_ = false;
  std::string fault_;  // the first one
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace megalith

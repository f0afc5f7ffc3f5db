// Reads and writes of spill files with many requests in flight, every chunk checked.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/disk_engine.h"
#include "memory/io_method.h"
#include "memory/spill_file.h"

namespace megalith {

// Used by one thread at a time; each lane owns one. A transfer is cut into chunks; at most `depth` of them
// are in flight, in the order asked for, and the next start whenever the queue is called. So a caller that
// goes off to compute finds `depth` chunks moved when it comes back, not more.
//
// Buffers belong to the queue until wait() has returned or thrown for their ticket. Two transfers of the same
// chunk, one of them a write, must not be in flight together, on this queue or another.
class DiskQueue {
 public:
  DiskQueue(std::unique_ptr<DiskEngine> engine, int depth);
  ~DiskQueue();  // waits for what is in flight (the kernel still uses those buffers), drops the rest
  DiskQueue(const DiskQueue&) = delete;
  DiskQueue& operator=(const DiskQueue&) = delete;

  using Ticket = int64_t;
  // Who compares what was read with what had been written (SpillFile::check), and notes what is to be written
  // (SpillFile::remember): the queue, or the caller, after the read or before the write.
  enum class Checks : uint8_t { queue, caller };
  // `offset` is a multiple of the file's unit, the length and the address are multiples of kDiskAlign.
  Ticket read(SpillFile& file, int64_t offset, std::span<std::byte> into, Checks by = Checks::queue);
  // Checksums are taken as chunks start: `from` must not change before wait.
  Ticket write(SpillFile& file, int64_t offset, std::span<const std::byte> from, Checks by = Checks::queue);
  // Returns when the transfer is complete and, if it was a read that the queue checks, is what had been written. Throws
  // Fault: the disk failed, is full, the file was cut short, a chunk holds something else. A ticket waited for is done with.
  void wait(Ticket ticket);
  // Every ticket; throws the first Fault after all have ended.
  void wait_all();

  // Bytes asked for so far; any thread may ask.
  int64_t bytes_read() const { return moved_[0].load(std::memory_order_relaxed); }
  int64_t bytes_written() const { return moved_[1].load(std::memory_order_relaxed); }

 private:
  struct Request {
    Ticket ticket = 0;
    SpillFile* file = nullptr;
    bool write = false;
    Checks by = Checks::queue;
    int64_t offset = 0;
    std::byte* data = nullptr;
    int64_t length = 0;
    int64_t moved = 0;
  };
  struct Progress {
    int64_t requests = 0;  // not ended yet
    std::string error;     // the first one
  };
  Ticket add(SpillFile& file, int64_t offset, std::byte* data, int64_t length, bool write, Checks by);
  void start_more();
  void finish_one();
  void start(size_t slot);
  void end(size_t slot);
  void fail(const Request& request, std::string error);

  std::unique_ptr<DiskEngine> engine_;
  std::vector<Request> slots_;  // in flight or free
  std::vector<size_t> free_slots_;
  std::deque<Request> waiting_;         // not started
  std::map<Ticket, Progress> tickets_;  // not waited for
  Ticket next_ticket_ = 1;
  std::array<std::atomic<int64_t>, 2> moved_{};  // read, written
};

std::unique_ptr<DiskQueue> make_disk_queue(const IoMethod& way, int depth);

}  // namespace megalith

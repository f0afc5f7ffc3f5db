// Reads and writes spill files with many requests in flight, and checks every chunk.
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

// Used by one thread at a time; each lane owns one. A transfer is divided into chunks. At most `depth` chunks are in
// flight, in the order of the calls. The next chunks start whenever the queue is called. So while a caller computes, at
// most `depth` chunks are moved.
//
// Buffers belong to the queue until wait() has returned or thrown for their ticket. Two transfers of the same chunk must
// not be in flight together if one of them writes. This holds for all queues together.
class DiskQueue {
 public:
  DiskQueue(std::unique_ptr<DiskEngine> engine, int depth);
  ~DiskQueue();  // waits for transfers in flight (the kernel still uses their buffers), drops the rest
  DiskQueue(const DiskQueue&) = delete;
  DiskQueue& operator=(const DiskQueue&) = delete;

  using Ticket = int64_t;
  // The queue or the caller verifies checksums after a read (SpillFile::check) and records them before a write
  // (SpillFile::remember).
  enum class Checks : uint8_t { queue, caller };
  // `offset` is a multiple of the file's unit, the length and the address are multiples of kDiskAlign.
  Ticket read(SpillFile& file, int64_t offset, std::span<std::byte> into, Checks by = Checks::queue);
  // Checksums are computed when chunks start: `from` must not change before wait.
  Ticket write(SpillFile& file, int64_t offset, std::span<const std::byte> from, Checks by = Checks::queue);
  // Returns when the transfer is complete. If it was a read that the queue checks, the data is verified. Throws Fault if
  // the disk failed or is full, the file was cut short, or a chunk has other content. Afterwards the ticket is no longer
  // valid.
  void wait(Ticket ticket);
  // Waits for all tickets. Throws the first Fault after all have ended.
  void wait_all();

  // Bytes requested so far. Any thread may call these.
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

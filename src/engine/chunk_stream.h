// Streams chunks of several arrays through memory in lockstep: reads them, works on them, writes them back.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/chores.h"
#include "engine/block_store.h"
#include "memory/disk_queue.h"

namespace megalith {

// A piece of a spill file and its bytes in memory.
struct SpillPiece {
  SpillFile* file = nullptr;
  int64_t offset = 0;
  std::span<std::byte> bytes;
  void check() const { file->check(offset, bytes); }
  void remember() const { file->remember(offset, bytes); }
};

// Waits for all transfers in flight when it is destroyed, also after an exception: the disk uses buffers that are about to
// be freed.
class Flight {
 public:
  explicit Flight(DiskQueue& disk) : disk_(disk) {}
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

 private:
  DiskQueue& disk_;
};

class ChunkStream {
 public:
  // Returns how many chunks of an array are in memory while `chunks` of them stream.
  static int64_t slots(int64_t chunks, Staging staging);

  // The thread that works: the caller's, chunk by chunk in order; or any free thread, tile by tile.
  enum class By : uint8_t { caller, anyone };
  ChunkStream(DiskQueue& disk, const std::vector<std::vector<BlockStore::Array>>& parts, By by, Staging staging,
              const BlockStore::TileWork& work);
  void run();

 private:
  using Array = BlockStore::Array;
  struct Turn {
    size_t part = 0;
    int64_t chunk = 0;
    int64_t chores = 0;  // number of chores up to the last one of this turn
  };
  // Number of slots that are being read. The others are being worked on or written.
  int64_t ahead() const { return std::max<int64_t>(2, slots_ * 5 / 12); }
  int64_t turns() const { return static_cast<int64_t>(turns_.size()); }
  const Turn& turn(int64_t number) const { return turns_[static_cast<size_t>(number)]; }
  const std::vector<Array>& arrays_of(int64_t number) const { return parts_[turn(number).part]; }
  int64_t elements_of(int64_t number) const;  // elements of the turn's chunk
  int64_t chores_before(int64_t number) const { return number == 0 ? 0 : turn(number - 1).chores; }
  SpillPiece chunk_of(int64_t number, size_t array) const;
  int64_t tile_elements(int64_t number) const;
  void work(int64_t number, int64_t first, int64_t count) const;  // verifies a tile, works on it, updates its checksum
  void come(int64_t number);
  void hand_over(int64_t number);
  bool worked_on(int64_t number) const;
  void go();
  void settle(std::vector<DiskQueue::Ticket>& tickets);

  DiskQueue& disk_;
  const std::vector<std::vector<Array>>& parts_;
  const By by_;
  const BlockStore::TileWork& work_;
  std::vector<Turn> turns_;
  int64_t slots_ = 0;
  bool scarce_ = false;              // so few slots that the disk would be idle if we waited for another thread
  at::Tensor staging_;
  std::vector<int64_t> strides_;     // bytes of the largest staged chunk, by kind; 0: the kind is not staged
  std::vector<int64_t> places_;      // offset in `staging_` in bytes, by kind
  std::vector<std::vector<DiskQueue::Ticket>> coming_, going_;  // reads and writes, by turn modulo slots_
  int64_t gone_ = 0;                 // turns whose writes have started
  Flight flight_;                    // declared before the chores, so that it ends after them
  HandedOver chores_;
};

}  // namespace megalith

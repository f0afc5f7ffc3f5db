// Chunks of several arrays that go through memory in step: in from the disk, worked on, out again.
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

// A piece of a spill file and where it is in memory.
struct SpillPiece {
  SpillFile* file = nullptr;
  int64_t offset = 0;
  std::span<std::byte> bytes;
  void check() const { file->check(offset, bytes); }
  void remember() const { file->remember(offset, bytes); }
};

// Ends what is in flight whatever happens: the disk uses buffers that are somebody else's soon.
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
  // Chunks of an array that are in memory while as many stream.
  static int64_t slots(int64_t chunks, Staging staging);

  // Who works: the caller's thread, chunk by chunk in order, or whoever has time, tile by tile.
  enum class By : uint8_t { caller, anyone };
  ChunkStream(DiskQueue& disk, const std::vector<std::vector<BlockStore::Array>>& parts, By by, Staging staging,
              const BlockStore::TileWork& work);
  void run();

 private:
  using Array = BlockStore::Array;
  struct Turn {
    size_t part = 0;
    int64_t chunk = 0;
    int64_t chores = 0;  // up to the end of its own
  };
  // Slots on their way in; the others are worked on or on their way out.
  int64_t ahead() const { return std::max<int64_t>(2, slots_ * 5 / 12); }
  int64_t turns() const { return static_cast<int64_t>(turns_.size()); }
  const Turn& turn(int64_t number) const { return turns_[static_cast<size_t>(number)]; }
  const std::vector<Array>& arrays_of(int64_t number) const { return parts_[turn(number).part]; }
  int64_t elements_of(int64_t number) const;  // of its chunk
  int64_t chores_before(int64_t number) const { return number == 0 ? 0 : turn(number - 1).chores; }
  SpillPiece chunk_of(int64_t number, size_t array) const;
  int64_t tile_elements(int64_t number) const;
  void work(int64_t number, int64_t first, int64_t count) const;  // on a tile: checked before, its checksum taken after
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
  bool scarce_ = false;              // so few that the disk would be idle until somebody comes by
  at::Tensor staging_;
  std::vector<int64_t> strides_;     // bytes, by kind: of the largest chunk that is staged; 0: none is
  std::vector<int64_t> places_;      // bytes into it, by kind
  std::vector<std::vector<DiskQueue::Ticket>> coming_, going_;  // by turn modulo slots_
  int64_t gone_ = 0;                 // turns whose chunks are on their way out
  Flight flight_;                    // ends after the chores: declared before them
  HandedOver chores_;
};

}  // namespace megalith

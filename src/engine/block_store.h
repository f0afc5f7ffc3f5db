// The state of spilled blocks on disk. Each kind of state has one file; each segment has its own extent in that file.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/slot_format.h"
#include "engine/stored_array.h"
#include "memory/disk_queue.h"
#include "memory/spill_file.h"
#include "memory/spill_folder.h"
#include "schedule/schedule.h"

namespace at {
class Tensor;
}

namespace megalith {

StoredArray stored_slot(const SlotSize& slot);

// The arrays of one segment on disk, by kind.
struct StoredBlock {
  StoredArray parameters, gradient;  // float32
  std::vector<StoredArray> slots;    // optimizer state, one number per element
  std::vector<StoredArray> inputs;   // of the layer, offloaded to disk; by micro-batch
};

// Returns an uninitialised flat float32 buffer for disk transfers of `elements`. It is a view of a larger tensor: it begins
// at a multiple of kDiskAlign, and there is room for padding behind it.
at::Tensor disk_buffer(int64_t elements);

class BlockStore {
 public:
  // Reserves all disk space at once. `blocks`: by SegmentState::stored.
  BlockStore(const std::filesystem::path& folder, const std::vector<StoredBlock>& blocks, Staging staging);

  struct Extent {
    SpillFile* file = nullptr;
    int64_t offset = 0;  // bytes, a multiple of the file's unit: every chunk starts at a unit
    StoredArray array;
  };
  Extent parameters(BlockId block) const { return places_[static_cast<size_t>(block)].parameters; }
  Extent gradient(BlockId block) const { return places_[static_cast<size_t>(block)].gradient; }
  // Returns the extent of an input. `bytes` must not be more than StoredBlock::inputs reserved.
  Extent input(BlockId block, MicroId micro, int64_t bytes) const;
  const std::vector<Extent>& slots(BlockId block) const { return places_[static_cast<size_t>(block)].slots; }

  // A whole extent of float32. `buffer` is the data of a disk_buffer. `read` and `write` move all extents at once.
  struct Whole {
    Extent extent;
    float* buffer = nullptr;
  };
  void read(Lane lane, std::span<const Whole> all);
  void write(Lane lane, std::span<const Whole> all);

  // One of several arrays that stream through memory in lockstep, one chunk at a time.
  struct Array {
    Extent extent;
    bool reads = false;     // its chunks are read before the work
    bool writes = false;    // its chunks are written after the work
    float* whole = nullptr; // the whole array in memory (a disk_buffer); null: chunks pass through staging buffers
  };
  // Calls `work(chunk, pointers)` for every chunk in order, on the calling thread. There is one pointer per array, to the
  // bytes of the chunk. Meanwhile the disk reads the next chunks and writes the previous ones.
  using ChunkWork = std::function<void(int64_t chunk, std::span<std::byte* const> arrays)>;
  void stream(Lane lane, const std::vector<Array>& arrays, const ChunkWork& work);
  // Streams several parts of a block without a pause between them. Calls `work(tile, pointers)` tile by tile, in any order
  // and on any thread (base/chores.h), several at once. The pointers are to the bytes of the tile's chunk. All parts have
  // the same kinds of arrays in the same order; a part may lack the last kind. A chunk of packed numbers is one tile.
  struct Tile {
    size_t part = 0;
    int64_t chunk = 0;
    int64_t first = 0, count = 0;  // elements inside the chunk
  };
  using TileWork = std::function<void(const Tile& tile, std::span<std::byte* const> arrays)>;
  void stream(Lane lane, const std::vector<std::vector<Array>>& parts, const TileWork& work);

  const IoMethod& way() const { return folder_.way(); }
  int64_t bytes() const { return bytes_; }  // on disk
  int64_t bytes_read() const;               // until now, on all lanes
  int64_t bytes_written() const;

 private:
  struct Places {
    Extent parameters, gradient;
    std::vector<Extent> slots, inputs;
  };
  DiskQueue& queue(Lane lane) { return *queues_[static_cast<size_t>(lane)]; }

  SpillFolder folder_;
  Staging staging_;
  std::unique_ptr<SpillFile> parameters_, gradients_, optimizer_, inputs_;
  std::vector<Places> places_;
  std::array<std::unique_ptr<DiskQueue>, kLanes> queues_;  // by lane; each lane has one thread
  int64_t bytes_ = 0;
};

// BlockStore::read and BlockStore::write, on the given queue.
void read_whole(DiskQueue& disk, std::span<const BlockStore::Whole> all);
void write_whole(DiskQueue& disk, std::span<const BlockStore::Whole> all);

}  // namespace megalith

// The state of spilled blocks on disk: one file a kind, each block's elements in an extent of its own.
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

// Of a block on disk, by kind.
struct StoredBlock {
  StoredArray parameters, gradient;  // float32
  std::vector<StoredArray> slots;    // optimizer state, one number an element
  std::vector<StoredArray> inputs;   // that park, by micro-batch
};

// A flat float32 buffer that whole transfers of `elements` fit into, wherever the allocator puts it: a view, aligned
// and with room behind it. Uninitialised.
at::Tensor disk_buffer(int64_t elements);

class BlockStore {
 public:
  // Takes all of the disk's space at once. `blocks`: by BlockId.
  BlockStore(const std::filesystem::path& folder, const std::vector<StoredBlock>& blocks, Staging staging);

  struct Extent {
    SpillFile* file = nullptr;
    int64_t offset = 0;  // bytes, a multiple of the file's unit: every chunk begins a unit
    StoredArray array;
  };
  Extent parameters(BlockId block) const { return places_[static_cast<size_t>(block)].parameters; }
  Extent gradient(BlockId block) const { return places_[static_cast<size_t>(block)].gradient; }
  // The place of an input of so many bytes, at most those it was made for.
  Extent input(BlockId block, MicroId micro, int64_t bytes) const;
  const std::vector<Extent>& slots(BlockId block) const { return places_[static_cast<size_t>(block)].slots; }

  // Whole extents of float32, all of them at once; `buffer` is a disk_buffer's.
  struct Whole {
    Extent extent;
    float* buffer = nullptr;
  };
  void read(Lane lane, std::span<const Whole> all);
  void write(Lane lane, std::span<const Whole> all);

  // One array of several that stream through memory in step, a chunk at a time.
  struct Array {
    Extent extent;
    bool reads = false;     // its chunks come in before the work,
    bool writes = false;    // and go out after it
    float* whole = nullptr; // where all of it is in memory (a disk_buffer); null: through staging buffers
  };
  // Calls `work(chunk, pointers)` for every chunk in order, here, with a pointer to its bytes for every array, while the
  // next chunks come in and the last go out.
  using ChunkWork = std::function<void(int64_t chunk, std::span<std::byte* const> arrays)>;
  void stream(Lane lane, const std::vector<Array>& arrays, const ChunkWork& work);
  // The same of several parts of a block without a pause between them, tile by tile, in any order and by any thread
  // (base/chores.h), several at once: work(tile, pointers to its chunk's bytes). The arrays of all parts are of the same
  // kinds in the same order; the last of them may be left out. A chunk of packed numbers is one tile.
  struct Tile {
    size_t part = 0;
    int64_t chunk = 0;
    int64_t first = 0, count = 0;  // elements inside the chunk
  };
  using TileWork = std::function<void(const Tile& tile, std::span<std::byte* const> arrays)>;
  void stream(Lane lane, const std::vector<std::vector<Array>>& parts, const TileWork& work);

  const IoMethod& way() const { return folder_.way(); }
  int64_t bytes() const { return bytes_; }  // on disk
  int64_t bytes_read() const;               // so far, on all lanes
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
  std::array<std::unique_ptr<DiskQueue>, kLanes> queues_;  // a lane is one thread
  int64_t bytes_ = 0;
};

// What BlockStore's read and write do on a lane's queue.
void read_whole(DiskQueue& disk, std::span<const BlockStore::Whole> all);
void write_whole(DiskQueue& disk, std::span<const BlockStore::Whole> all);

}  // namespace megalith

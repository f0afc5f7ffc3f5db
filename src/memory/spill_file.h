// One file of the disk tier: space taken at once, and what its chunks must hold, remembered in memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "memory/io_method.h"

namespace megalith {

inline constexpr int64_t kDiskAlign = 4096;      // offset, length and address of every transfer are multiples
inline constexpr int64_t kSpillChunk = 1 << 20;  // usual unit of one disk request
inline constexpr int64_t kSpillTile = 1 << 17;   // bytes with a checksum of their own

// Scratch: no run ever reads another's. So the file's name is taken away as soon as it is open, and the
// kernel frees the space with the last descriptor, whatever ends the process; there is nothing to clean up,
// not even after kill -9. (What the name would have given, a look at the bytes from outside, /proc/PID/fd
// gives as well.)
//
// Passive: queues (memory/disk_queue.h) do the work. Several threads may use disjoint chunks at the same
// time.
class SpillFile {
 public:
  // Takes the space of `bytes` now, rounded up to kDiskAlign. UserError (memory.spill) when the disk has no
  // room for it or the folder cannot be written, Fault when the disk fails. `unit`: bytes of a chunk, a multiple
  // of kDiskAlign.
  SpillFile(std::filesystem::path path, int64_t bytes, const IoMethod& way, int64_t unit = kSpillChunk);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  const std::filesystem::path& path() const { return path_; }  // as it was called while it had a name
  int64_t bytes() const { return bytes_; }
  int64_t unit() const { return unit_; }
  int descriptor() const { return descriptor_; }

  // Called by queues or for them. `offset` is a multiple of kSpillTile from its chunk's beginning, `bytes` what is
  // transferred from there on; only at the transfer's end is it not a multiple as well.
  void remember(int64_t offset, std::span<const std::byte> bytes);
  // Fault unless this is what was last written there.
  void check(int64_t offset, std::span<const std::byte> bytes) const;
  // Whether a transfer of this length may be read: its tiles were written with the same ends.
  bool holds(int64_t offset, int64_t length) const;

 private:
  struct Written {
    uint64_t hash = 0;   // XXH3, 64 bits
    int64_t length = 0;  // 0: nothing yet
  };
  int64_t tiles() const { return (unit_ + kSpillTile - 1) / kSpillTile; }  // of a chunk
  size_t tile_at(int64_t offset) const;
  std::filesystem::path path_;
  int64_t bytes_ = 0;
  int64_t unit_ = kSpillChunk;
  int descriptor_ = -1;
  std::vector<Written> written_;  // tiles, chunk by chunk
};

}  // namespace megalith

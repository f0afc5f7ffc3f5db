// One file of the disk tier. It allocates its disk space at once, and keeps checksums of its chunks in memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "memory/io_method.h"

namespace megalith {

inline constexpr int64_t kDiskAlign = 4096;      // bytes; offset, length and address of every transfer are multiples
inline constexpr int64_t kSpillChunk = 1 << 20;  // bytes; usual unit of one disk request
inline constexpr int64_t kSpillTile = 1 << 17;   // each block of this number of bytes has a checksum

// A temporary file: no run reads another run's file. So the file is unlinked as soon as it is open. The kernel frees the
// space with the last descriptor, even if the process is killed. So nothing must be cleaned up, even after kill -9. (To
// inspect the bytes from outside, use /proc/PID/fd.)
//
// Passive: queues (memory/disk_queue.h) do the transfers. Several threads may use disjoint chunks at the same time.
class SpillFile {
 public:
  // Allocates the space of `bytes` now, rounded up to kDiskAlign. Throws UserError (memory.spill) if the disk has not
  // enough space or the folder cannot be written. Throws Fault if the disk fails. `unit`: bytes of a chunk, a multiple
  // of kDiskAlign.
  SpillFile(std::filesystem::path path, int64_t bytes, const IoMethod& way, int64_t unit = kSpillChunk);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  const std::filesystem::path& path() const { return path_; }  // the name before it was unlinked
  int64_t bytes() const { return bytes_; }
  int64_t unit() const { return unit_; }
  int descriptor() const { return descriptor_; }

  // Records checksums of data that is being written. Called by queues, or by their callers. `offset` is a multiple of
  // kSpillTile from the beginning of its chunk. `bytes` is the data transferred there. Only its end may be unaligned.
  void remember(int64_t offset, std::span<const std::byte> bytes);
  // Throws Fault unless `bytes` is what was last written there.
  void check(int64_t offset, std::span<const std::byte> bytes) const;
  // True if a transfer of this length may be read: its tiles were written with the same ends.
  bool holds(int64_t offset, int64_t length) const;

 private:
  struct Written {
    uint64_t hash = 0;   // XXH3, 64 bits
    int64_t length = 0;  // 0: not written yet
  };
  int64_t tiles() const { return (unit_ + kSpillTile - 1) / kSpillTile; }  // of a chunk
  size_t tile_at(int64_t offset) const;
  std::filesystem::path path_;
  int64_t bytes_ = 0;
  int64_t unit_ = kSpillChunk;
  int descriptor_ = -1;
  std::vector<Written> written_;  // by tile, chunk by chunk
};

}  // namespace megalith

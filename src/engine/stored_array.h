// An array of a block on disk, and how much memory it takes while it streams.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

// Chunks of kStateChunk elements, each with some bytes of its own behind it.
struct StoredArray {
  int64_t elements = 0;        // 0: not there
  int64_t element_bytes = 4;
  int64_t chunk_extra = 0;     // bytes
  int64_t chunks() const;
  int64_t chunk_bytes(int64_t chunk) const;  // as transferred: padded
  int64_t chunk_stride() const;              // bytes of a whole chunk, padded
  int64_t disk_bytes() const { return chunks() * chunk_stride(); }
};

// How much of an array is in memory while it streams: up to what a disk moves between two products and more (ample), or
// little beside what streams, if the budget has no room for that (scarce).
enum class Staging : uint8_t { scarce, ample };

// Memory that streaming takes for arrays of one kind, by kind and part.
int64_t staging_bytes(const std::vector<std::vector<StoredArray>>& staged, Staging staging);

}  // namespace megalith

// An array of a block on disk, and how much memory it takes while it streams.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

// An array in chunks of kStateChunk elements. `chunk_extra` more bytes follow the elements of each chunk.
struct StoredArray {
  int64_t elements = 0;        // 0: there is no such array
  int64_t element_bytes = 4;
  int64_t chunk_extra = 0;     // bytes
  int64_t chunks() const;
  int64_t chunk_bytes(int64_t chunk) const;  // as transferred: padded
  int64_t chunk_stride() const;              // bytes of a whole chunk, padded
  int64_t disk_bytes() const { return chunks() * chunk_stride(); }
};

// How much of an array is in memory while it streams. Ample: at least as much as a disk moves between two matrix products.
// Scarce: a small part of the array, if the budget has no room for more.
enum class Staging : uint8_t { scarce, ample };

// Returns the bytes of staging memory that these arrays need while they stream. `staged`: by kind, then by part.
int64_t staging_bytes(const std::vector<std::vector<StoredArray>>& staged, Staging staging);

}  // namespace megalith

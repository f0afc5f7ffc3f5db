// Checksums of a token shard, PREFIX.sums beside PREFIX.bin and PREFIX.idx. Other programs do not need the file, and
// shards without it are accepted. Layout (little endian, uint64 each): the magic, bytes per block, bytes of the .bin,
// bytes of the .idx, XXH3 of the .idx, XXH3 of each block of the .bin, and XXH3 of all that before.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"

namespace megalith {

// A file of a shard differs from its checksum, or the checksums are not those of this shard.
struct DamagedShard : UserError {
  using UserError::UserError;
};

// One sample at a random place reads one block from disk and hashes it, if no other sample did. 64 KiB costs about as
// much time as a page, and the .sums is an 8192th of the .bin: 64 MB of 500 GB.
inline constexpr int64_t kSumsBlock = 1 << 16;

struct SumsHeader {
  static constexpr uint64_t kMagic = 0x31534D5553474D;  // "MGSUMS1"
  uint64_t magic = kMagic;
  uint64_t block = kSumsBlock;
  uint64_t ids_bytes = 0, index_bytes = 0, index_xxh3 = 0;
};

// Checksums of the blocks of a file that is written from its beginning to its end.
class BlockSums {
 public:
  // Calls `done` with the checksum of each block that is full, or with the last one in finish().
  template <class Done>
  void add(std::span<const std::byte> bytes, const Done& done) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), static_cast<size_t>(kSumsBlock - filled_)));
      hash_.add(part);
      filled_ += std::ssize(part);
      bytes = bytes.subspan(part.size());
      if (filled_ == kSumsBlock) finish(done);
    }
  }
  template <class Done>
  void finish(const Done& done) {
    if (filled_ == 0) return;
    done(hash_.value());
    hash_.clear();
    filled_ = 0;
  }

 private:
  Xxh3 hash_;
  int64_t filled_ = 0;  // bytes of the open block
};

// Verifies a mapped shard against its .sums: the index at once, blocks of the .bin when they are first read. Thread-safe.
class ShardSums {
 public:
  // Returns null if PREFIX has no .sums. `ids`, the mapped .bin, must outlive the result. Throws DamagedShard: the .sums
  // is damaged or of another shard, or the index differs from it.
  static std::unique_ptr<const ShardSums> open(const std::filesystem::path& prefix, std::span<const std::byte> index,
                                               std::span<const std::byte> ids);

  // The bytes of the .bin that reading [begin, end) touches: whole blocks if one of them has yet to be verified.
  std::pair<int64_t, int64_t> touched(int64_t begin, int64_t end) const;
  // Throws DamagedShard with the .bin and the block, if one in [begin, end) differs from its checksum.
  void verify(int64_t begin, int64_t end) const;

 private:
  ShardSums(const std::filesystem::path& prefix, MappedFile file, std::span<const std::byte> ids);
  bool is_verified(int64_t block) const;

  std::filesystem::path prefix_;
  MappedFile file_;
  std::span<const std::byte> ids_;
  mutable std::vector<std::atomic<uint64_t>> verified_;  // a bit per block
};

}  // namespace megalith

// Checksums of a token shard: PREFIX.sums, next to PREFIX.bin and PREFIX.idx. Other programs do not need the file, and
// shards without it are accepted. Layout (little endian, uint64 each): the magic, bytes per block, bytes of the .bin,
// bytes of the .idx, XXH3 of the .idx, XXH3 of each block of the .bin, and XXH3 of everything before.
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

// Thrown if a file of a shard differs from its checksum, or if the checksums belong to another shard.
struct DamagedShard : UserError {
  using UserError::UserError;
};

// Bytes per block. A sample at a random place reads one block from disk and hashes it, unless another sample did so
// before. 64 KiB takes about as much time as a page. The .sums has 1/8192 of the size of the .bin: 64 MB for 500 GB.
inline constexpr int64_t kSumsBlock = 1 << 16;

struct SumsHeader {
  static constexpr uint64_t kMagic = 0x31534D5553474D;  // "MGSUMS1"
  uint64_t magic = kMagic;
  uint64_t block = kSumsBlock;
  uint64_t ids_bytes = 0, index_bytes = 0, index_xxh3 = 0;
};

// Computes the checksums of the blocks of a file that is written from beginning to end.
class BlockSums {
 public:
  // add() calls `done` with the checksum of each full block. finish() does so for the last block, if it is not empty.
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
  // Returns null if PREFIX has no .sums. `ids`, the mapped .bin, must outlive the result. Throws DamagedShard: the
  // .sums is damaged or belongs to another shard, or the index differs from its checksum.
  static std::unique_ptr<const ShardSums> open(const std::filesystem::path& prefix, std::span<const std::byte> index,
                                               std::span<const std::byte> ids);

  // Returns the range of bytes of the .bin that reading [begin, end) touches: whole blocks if one of them is not
  // verified yet.
  std::pair<int64_t, int64_t> touched(int64_t begin, int64_t end) const;
  // Verifies the blocks of [begin, end). Throws DamagedShard, which names the .bin and the block, if one differs from
  // its checksum.
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

#include "text/shard_sums.h"

#include <algorithm>
#include <cstring>

#include "text/shards.h"

namespace megalith {
namespace {

constexpr size_t kSum = sizeof(uint64_t);

uint64_t sum_at(std::span<const std::byte> bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

size_t blocks_in(uint64_t bytes) { return static_cast<size_t>(bytes / kSumsBlock + (bytes % kSumsBlock != 0)); }

std::string hint_for(const std::filesystem::path& prefix) {
  return fmt::format("copy the shard again, or create it again with `megalith tokenize`; if another program wrote {0}.bin "
                     "and {0}.idx, remove {0}.sums", prefix.string());
}

}  // namespace

std::unique_ptr<const ShardSums> ShardSums::open(const std::filesystem::path& prefix, std::span<const std::byte> index,
                                                 std::span<const std::byte> ids) {
  const std::filesystem::path path = shard_file(prefix, ".sums");
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return nullptr;
  MappedFile file(path);
  const auto bytes = file.bytes();
  auto refuse = [&](const std::string& where, const std::string& expected, const std::string& got) {
    throw DamagedShard({where, "checksums", expected, got, hint_for(prefix)});
  };
  SumsHeader header;
  const bool whole = bytes.size() >= sizeof header + kSum &&
                     sum_at(bytes, bytes.size() - kSum) == xxh3(bytes.first(bytes.size() - kSum));
  if (whole) std::memcpy(&header, bytes.data(), sizeof header);
  if (!whole || header.magic != SumsHeader::kMagic || header.block != kSumsBlock ||
      bytes.size() != sizeof header + (blocks_in(header.ids_bytes) + 1) * kSum)
    refuse(path.string(), "the checksums of a token shard", "a damaged file");
  if (header.ids_bytes != ids.size() || header.index_bytes != index.size())
    refuse(path.string(), fmt::format("checksums of a .bin of {} bytes and an .idx of {} bytes", ids.size(), index.size()),
           fmt::format("checksums of {} and {} bytes", header.ids_bytes, header.index_bytes));
  if (header.index_xxh3 != xxh3(index))
    refuse(shard_file(prefix, ".idx").string(), fmt::format("the bytes that {} was computed from", path.filename().string()),
           "other bytes");
  return std::unique_ptr<const ShardSums>(new ShardSums(prefix, std::move(file), ids));
}

ShardSums::ShardSums(const std::filesystem::path& prefix, MappedFile file, std::span<const std::byte> ids)
    : prefix_(prefix), file_(std::move(file)), ids_(ids), verified_((blocks_in(ids.size()) + 63) / 64) {}

bool ShardSums::is_verified(int64_t block) const {
  const auto number = static_cast<size_t>(block);
  return (verified_[number / 64].load(std::memory_order_relaxed) >> (number % 64) & 1) != 0;
}

std::pair<int64_t, int64_t> ShardSums::touched(int64_t begin, int64_t end) const {
  for (int64_t block = begin / kSumsBlock; block * kSumsBlock < end; block++)
    if (!is_verified(block))
      return {begin / kSumsBlock * kSumsBlock,
              std::min((end + kSumsBlock - 1) / kSumsBlock * kSumsBlock, std::ssize(ids_))};
  return {begin, end};
}

// Two threads may verify the same block at the same time. Both get the same result.
void ShardSums::verify(int64_t begin, int64_t end) const {
  for (int64_t block = begin / kSumsBlock; block * kSumsBlock < end; block++) {
    if (is_verified(block)) continue;
    const auto number = static_cast<size_t>(block), at = number * static_cast<size_t>(kSumsBlock);
    const auto bytes = ids_.subspan(at, std::min(static_cast<size_t>(kSumsBlock), ids_.size() - at));
    if (xxh3(bytes) != sum_at(file_.bytes(), sizeof(SumsHeader) + number * kSum))
      throw DamagedShard({shard_file(prefix_, ".bin").string(), fmt::format("bytes {} to {}", at, at + bytes.size()),
                          fmt::format("the bytes that {}.sums was computed from", prefix_.filename().string()),
                          "other bytes",
                          hint_for(prefix_)});
    verified_[number / 64].fetch_or(uint64_t{1} << (number % 64), std::memory_order_relaxed);
  }
}

}  // namespace megalith

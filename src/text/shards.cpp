#include "text/shards.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace megalith {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little endian and read in place");

template <class T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value;  // the index is not aligned
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::filesystem::path shard_file(const std::filesystem::path& prefix, const char* extension) {
  std::filesystem::path path = prefix;
  path += extension;
  return path;
}

std::filesystem::path shard_prefix(const std::filesystem::path& name) {
  const bool file = name.extension() == ".bin" || name.extension() == ".idx";
  return file ? std::filesystem::path(name).replace_extension() : name;
}

bool is_shard(const std::filesystem::path& prefix) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(shard_file(prefix, ".idx"), ignored) &&
         std::filesystem::is_regular_file(shard_file(prefix, ".bin"), ignored);
}

void expect_shard(const std::filesystem::path& name) {
  if (!is_shard(shard_prefix(name)))
    throw UserError({name.string(), "", "token shards: PREFIX.bin with PREFIX.idx", "not both files",
                     "create shards from text with `megalith tokenize`"});
}

TokenShard::TokenShard(const std::filesystem::path& prefix)
    : prefix_(prefix), index_(shard_file(prefix, ".idx")), ids_(shard_file(prefix, ".bin")) {
  std::string where = shard_file(prefix, ".idx").string();
  auto refuse = [&](std::string key, std::string expected, std::string got, std::string hint = "") {
    throw UserError({where, std::move(key), std::move(expected), std::move(got), std::move(hint)});
  };
  auto bytes = index_.bytes();
  if (bytes.size() < kShardHeaderBytes || index_.text().substr(0, kShardMagic.size()) != kShardMagic)
    refuse("token shard", "an index of Megatron's format (MMIDIDX)", "something else",
           "create shards with `megalith tokenize`");
  if (auto version = load<uint64_t>(bytes, 9); version != 1)
    refuse("version", "1", std::to_string(version), "other versions are not supported");
  auto code = load<uint8_t>(bytes, 17);
  if (code != static_cast<uint8_t>(TokenWidth::int32) && code != static_cast<uint8_t>(TokenWidth::uint16))
    refuse("type of the ids", "4 (int32) or 8 (uint16)", std::to_string(code), "other types are not supported");
  width_ = static_cast<TokenWidth>(code);

  auto sequences = load<uint64_t>(bytes, 18), starts = load<uint64_t>(bytes, 26);
  size_t room = bytes.size() - kShardHeaderBytes;
  // Compared by division, so that absurd counts cannot overflow.
  const bool fits = sequences <= room / 12 && starts <= (room - 12 * sequences) / 8;
  const size_t beyond = fits ? room - 12 * sequences - 8 * starts : 0;
  if (!fits || (beyond != 0 && beyond != sequences))
    refuse("size", fmt::format("the size of an index of {} sequences and {} documents", sequences, starts ? starts - 1 : 0),
           fmt::format("{} bytes", bytes.size()), "the index is truncated or has another format");
  if (starts == 0) refuse("documents", "at least one entry", "no entry");
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(starts) - 1;
  offsets_at_ = kShardHeaderBytes + 4 * sequences;
  document_starts_at_ = offsets_at_ + 8 * sequences;

  int64_t stored = static_cast<int64_t>(ids_.bytes().size()), position = 0;
  for (int64_t i = 0; i < sequences_; i++) {
    auto length = load<int32_t>(bytes, kShardHeaderBytes + 4 * static_cast<size_t>(i));
    auto offset = load<int64_t>(bytes, offsets_at_ + 8 * static_cast<size_t>(i));
    if (length < 0) refuse(fmt::format("length of sequence {}", i), "0 or more", std::to_string(length));
    if (offset != position)
      refuse(fmt::format("offset of sequence {}", i), fmt::format("{} (the end of the previous sequence)", position),
             std::to_string(offset));
    position += length * bytes_of(width_);
    if (position > stored) break;  // reported below
  }
  if (position != stored)
    refuse("tokens", fmt::format("a .bin of {}{} bytes", position > stored ? "at least " : "", position),
           fmt::format("{} bytes", stored), "one of the two files is truncated or belongs to another shard");
  tokens_ = stored / bytes_of(width_);
  for (size_t i = 0; i < beyond; i++)
    if (auto mode = load<int8_t>(bytes, bytes.size() - beyond + i); mode != 0)
      refuse(fmt::format("mode of sequence {}", i), "0 (text)", std::to_string(mode), "other modes are not supported");
  for (int64_t d = 0, before = 0; d <= documents_; d++) {
    auto start = load<int64_t>(bytes, document_starts_at_ + 8 * static_cast<size_t>(d));
    bool good = d == 0 ? start == 0 : start >= before;
    if (d == documents_) good = good && start == sequences_;
    if (!good || start > sequences_)
      refuse(fmt::format("beginning of document {}", d),
             fmt::format("sequence numbers in ascending order, from 0 to {}", sequences_),
             std::to_string(start));
    before = start;
  }
  sums_ = ShardSums::open(prefix_, index_.bytes(), ids_.bytes());
  expect_random_access();
}

TokenId TokenShard::at(int64_t position) const {
  TokenId id = 0;
  copy(position, std::span(&id, 1));
  return id;
}

// Samples are at random places in the shard. The system's own read-ahead would waste megabytes of reading per sample.
void TokenShard::expect_random_access() const {
  auto bytes = ids_.bytes();
  if (!bytes.empty()) ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_RANDOM);
}

// Asks the system to read all pages of a range at once. Otherwise it reads them one by one when they are touched.
void TokenShard::read_ahead(const std::byte* from, int64_t bytes) const {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(from) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(bytes);
  if (end - first > page) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_WILLNEED);
}

template <class T>
void TokenShard::copy_as(int64_t begin, std::span<T> out) const {
  int64_t count = static_cast<int64_t>(out.size());
  MEGALITH_ASSERT(begin >= 0 && count <= tokens_ && begin <= tokens_ - count, "tokens {} to {} of {}", begin,
                  begin + count, tokens_);
  const int64_t first = begin * bytes_of(width_), last = first + count * bytes_of(width_);
  const auto [touched, touched_end] = sums_ ? sums_->touched(first, last) : std::pair(first, last);
  read_ahead(ids_.bytes().data() + touched, touched_end - touched);
  if (sums_) sums_->verify(first, last);
  const std::byte* from = ids_.bytes().data() + first;  // mapped files are aligned
  if (width_ == TokenWidth::uint16)
    std::copy_n(reinterpret_cast<const uint16_t*>(from), count, out.data());
  else
    std::copy_n(reinterpret_cast<const int32_t*>(from), count, out.data());
}

void TokenShard::copy(int64_t begin, std::span<int64_t> out) const {
  copy_as(begin, out);
}
void TokenShard::copy(int64_t begin, std::span<TokenId> out) const {
  copy_as(begin, out);
}

int64_t TokenShard::document_begin(int64_t document) const {
  MEGALITH_ASSERT(document >= 0 && document <= documents_, "document {} of {}", document, documents_);
  auto sequence = load<int64_t>(index_.bytes(), document_starts_at_ + 8 * static_cast<size_t>(document));
  if (sequence == sequences_) return tokens_;
  return load<int64_t>(index_.bytes(), offsets_at_ + 8 * static_cast<size_t>(sequence)) / bytes_of(width_);
}

int64_t TokenShard::document_of(int64_t position) const {
  MEGALITH_ASSERT(position >= 0 && position < tokens_, "token {} of {}", position, tokens_);
  int64_t low = 0, high = documents_;  // document_begin(low) <= position < document_begin(high)
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (document_begin(middle) <= position ? low : high) = middle;
  }
  return low;
}

}  // namespace megalith

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/new_file.h"
#include "text/shards.h"

namespace megalith {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
// A document longer than this many tokens becomes several sequences: lengths are 32-bit.
constexpr int64_t kLongestSequence = 1 << 30;
constexpr uint32_t kEndsDocument = uint32_t{1} << 31;

int open_for_writing(const std::filesystem::path& path) {
  int fd = open_or_create_file(path);
  if (fd < 0) throw_cannot("write", path, errno);
  return fd;
}

// Removes a file that is not needed any more. If that fails, a warning says why the file stays.
void remove_unneeded(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    log::warn("{}: cannot remove: {}; the file is no longer needed", path.string(), std::strerror(errno));
}

// Opens a file that only this process may write. The process that wrote it before may have
// renamed or removed it in the meantime. Then the name belongs to another file.
int open_alone(const std::filesystem::path& path) {
  for (;;) {
    int fd = open_for_writing(path);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      log::warn("{}: waiting for another process that is writing this file", path.string());
      while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
      }
    }
    struct stat mine {
    }, named{};
    if (::fstat(fd, &mine) == 0 && ::stat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino)
      return fd;
    ::close(fd);
  }
}

}  // namespace

void ShardWriter::GrowingFile::append(const void* bytes, size_t count) {
  buffer.append(static_cast<const char*>(bytes), count);
  size += static_cast<int64_t>(count);
  if (buffer.size() >= kBufferBytes) flush();
}

void ShardWriter::GrowingFile::flush() {
  if (before_write) before_write(std::as_bytes(std::span(buffer)));
  write_whole(fd, buffer, path);
  buffer.clear();
}

void ShardWriter::GrowingFile::sync() {
  flush();
  if (::fdatasync(fd) != 0) throw_cannot("write", path, errno);
}

ShardWriter::ShardWriter(std::filesystem::path prefix, TokenWidth width, std::string job)
    : prefix_(std::move(prefix)), job_(std::move(job)), width_(width), kept_(std::make_unique<nlohmann::json>()) {
  if (prefix_.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(prefix_.parent_path(), error);
    if (error) throw_cannot("write", prefix_.parent_path(), error.value());
  }
  ids_.path = shard_file(prefix_, ".bin.partial");
  sequences_.path = shard_file(prefix_, ".lengths.partial");
  ids_.fd = open_alone(ids_.path);
  sequences_.fd = open_for_writing(sequences_.path);
  sums_.path = shard_file(prefix_, ".sums.partial");
  sums_.fd = open_for_writing(sums_.path);
  sums_.size = sizeof(SumsHeader);
  leave_ = resume();
  for (GrowingFile* file : {&ids_, &sequences_, &sums_}) {
    if (::ftruncate(file->fd, file->size) != 0) throw_cannot("write", file->path, errno);
    ::lseek(file->fd, 0, SEEK_END);
    file->buffer.reserve(kBufferBytes + 4);
  }
  if (leave_) sum_open_block();
  else remove_unneeded(journal());
  ids_.before_write = [this](std::span<const std::byte> bytes) {
    open_block_.add(bytes, [this](uint64_t sum) { add_sum(sum); });
  };
}

ShardWriter::~ShardWriter() {
  if (!leave_) remove_aside();
  for (GrowingFile* file : {&ids_, &sequences_, &sums_}) ::close(file->fd);
}

std::filesystem::path ShardWriter::journal() const {
  return shard_file(prefix_, ".partial.json");
}

void ShardWriter::remove_aside() {
  for (const auto& path : {journal(), sequences_.path, sums_.path, ids_.path}) remove_unneeded(path);
}

void ShardWriter::discard() {
  leave_ = false;
}

bool ShardWriter::resume() {
  std::error_code ignored;
  if (job_.empty() || !std::filesystem::exists(journal(), ignored)) return false;
  auto saved = try_parse_json(read_file(journal()));
  auto number = [&](const char* key) {
    auto found = saved.find(key);
    return found != saved.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
  };
  if (!saved.is_object() || saved.value("job", "") != job_) return false;
  const int64_t tokens = number("tokens"), sequences = number("sequences");
  auto size = [](const GrowingFile& file) {
    struct stat status {};
    return ::fstat(file.fd, &status) == 0 ? static_cast<int64_t>(status.st_size) : 0;
  };
  const int64_t bytes = tokens * bytes_of(width_);
  const int64_t sums = static_cast<int64_t>(sizeof(SumsHeader)) + bytes / kSumsBlock * 8;
  if (tokens < 0 || sequences < 0 || number("documents") < 0 || number("open_length") < 0 || bytes > size(ids_) ||
      sequences * 4 > size(sequences_) || sums > size(sums_))
    return false;
  tokens_ = tokens;
  sequence_count_ = sequences;
  documents_ = number("documents");
  open_length_ = number("open_length");
  open_document_ = saved.value("open_document", false);
  ids_.size = bytes;
  sums_.size = sums;
  sequences_.size = sequences * 4;
  *kept_ = saved.value("note", nlohmann::json());
  return true;
}

void ShardWriter::keep(const nlohmann::json& note) {
  MEGALITH_ASSERT(!job_.empty(), "a shard without a job is kept");
  ids_.sync();
  sequences_.sync();
  sums_.sync();
  nlohmann::json state{{"job", job_},
                       {"tokens", tokens_},
                       {"sequences", sequence_count_},
                       {"documents", documents_},
                       {"open_length", open_length_},
                       {"open_document", open_document_},
                       {"note", note}};
  write_file_atomically(journal(), print_json(state, 1));
  leave_ = true;
}

void ShardWriter::add(std::span<const TokenId> ids) {
  open_document_ = true;
  for (TokenId id : ids) {
    if (open_length_ == kLongestSequence) end_sequence(false);
    if (width_ == TokenWidth::uint16) {
      MEGALITH_ASSERT(id >= 0 && id <= std::numeric_limits<uint16_t>::max(), "id {} in a uint16 shard", id);
      auto narrow = static_cast<uint16_t>(id);
      ids_.append(&narrow, sizeof narrow);
    } else {
      ids_.append(&id, sizeof id);
    }
    open_length_++;
  }
  tokens_ += static_cast<int64_t>(ids.size());
}

void ShardWriter::end_sequence(bool ends_document) {
  uint32_t entry = static_cast<uint32_t>(open_length_) | (ends_document ? kEndsDocument : 0);
  sequences_.append(&entry, sizeof entry);
  sequence_count_++;
  open_length_ = 0;
}

void ShardWriter::end_document() {
  end_sequence(true);
  documents_++;
  open_document_ = false;
}

// Reads back the last block of an earlier writer if the block is not full, so that its checksum continues.
void ShardWriter::sum_open_block() {
  std::string bytes(static_cast<size_t>(ids_.size % kSumsBlock), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const int64_t at = ids_.size - std::ssize(bytes) + static_cast<int64_t>(got);
    const ssize_t n = ::pread(ids_.fd, bytes.data() + got, bytes.size() - got, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_cannot("read", ids_.path, n < 0 ? errno : EIO);
    got += static_cast<size_t>(n);
  }
  open_block_.add(std::as_bytes(std::span(bytes)), [this](uint64_t sum) { add_sum(sum); });
}

void ShardWriter::finish_sums(const SumsHeader& header) {
  open_block_.finish([this](uint64_t sum) { add_sum(sum); });
  sums_.flush();
  write_whole_at(sums_.fd, {reinterpret_cast<const char*>(&header), sizeof header}, 0, sums_.path);
  add_sum(xxh3(MappedFile(sums_.path).bytes()));
  sums_.sync();
}

// Writes the index. Returns the header of the .sums file.
SumsHeader ShardWriter::write_index(const std::filesystem::path& path) {
  Xxh3 sum;
  GrowingFile index{.path = path,
                    .fd = open_for_writing(path),
                    .before_write = [&](std::span<const std::byte> bytes) { sum.add(bytes); }};
  std::unique_ptr<int, void (*)(int*)> closes(&index.fd, [](int* fd) { ::close(*fd); });
  if (::ftruncate(index.fd, 0) != 0) throw_cannot("write", path, errno);
  auto put = [&](auto value) { index.append(&value, sizeof value); };
  index.append(kShardMagic.data(), kShardMagic.size());
  put(uint64_t{1});
  put(static_cast<uint8_t>(width_));
  put(static_cast<uint64_t>(sequence_count_));
  put(static_cast<uint64_t>(documents_ + 1));
  MappedFile entries(sequences_.path);
  auto for_each = [&](auto use) {
    for (int64_t i = 0; i < sequence_count_; i++) {
      uint32_t entry;
      std::memcpy(&entry, entries.bytes().data() + 4 * i, sizeof entry);
      use(i, static_cast<int32_t>(entry & ~kEndsDocument), (entry & kEndsDocument) != 0);
    }
  };
  for_each([&](int64_t, int32_t length, bool) { put(length); });
  int64_t offset = 0;
  for_each([&](int64_t, int32_t length, bool) {
    put(offset);
    offset += length * bytes_of(width_);
  });
  put(int64_t{0});
  for_each([&](int64_t sequence, int32_t, bool ends_document) {
    if (ends_document) put(sequence + 1);
  });
  index.sync();
  return {.ids_bytes = static_cast<uint64_t>(ids_.size),
          .index_bytes = static_cast<uint64_t>(index.size),
          .index_xxh3 = sum.value()};
}

void ShardWriter::finish() {
  if (open_document_) end_document();
  ids_.sync();
  sequences_.flush();
  // Readers must never see an index without its .bin and .sums, or with older ones. So we remove the old index first,
  // and rename the new index last.
  std::filesystem::path bin = shard_file(prefix_, ".bin"), idx = shard_file(prefix_, ".idx");
  std::filesystem::path idx_aside = shard_file(prefix_, ".idx.partial");
  finish_sums(write_index(idx_aside));
  remove_unneeded(journal());  // from here on, an interrupted job starts from the beginning
  if (::unlink(idx.c_str()) != 0 && errno != ENOENT) throw_cannot("write", idx, errno);
  if (::rename(ids_.path.c_str(), bin.c_str()) != 0) throw_cannot("write", bin, errno);
  const std::filesystem::path sums = shard_file(prefix_, ".sums");
  if (::rename(sums_.path.c_str(), sums.c_str()) != 0) throw_cannot("write", sums, errno);
  if (::rename(idx_aside.c_str(), idx.c_str()) != 0) throw_cannot("write", idx, errno);
  remove_unneeded(sequences_.path);
  sync_directory(prefix_.parent_path());
  leave_ = true;
}

}  // namespace megalith

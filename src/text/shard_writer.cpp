#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "text/shards.h"

namespace megalith {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
// A document longer than this many tokens becomes several sequences: lengths are 32-bit.
constexpr int64_t kLongestSequence = 1 << 30;

[[noreturn]] void cannot_write(const std::filesystem::path& path, int error) {
  std::string reason = std::strerror(error);
  if (error == ENOSPC || error == EIO || error == EDQUOT)
    throw Fault(fmt::format("{}: cannot write: {}", path.string(), reason));
  throw UserError({path.string(), "", "", "", fmt::format("cannot write: {}", reason)});
}

}  // namespace

ShardWriter::ShardWriter(std::filesystem::path prefix, TokenWidth width)
    : prefix_(std::move(prefix)),
      aside_(shard_file(prefix_, fmt::format(".bin.{}.tmp", ::getpid()).c_str())),
      width_(width) {
  if (prefix_.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(prefix_.parent_path(), error);
    if (error) cannot_write(prefix_.parent_path(), error.value());
  }
  fd_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) cannot_write(shard_file(prefix_, ".bin"), errno);
  buffer_.reserve(kBufferBytes + 4);
}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!finished_) ::unlink(aside_.c_str());
}

void ShardWriter::add(std::span<const TokenId> ids) {
  open_document_ = true;
  for (TokenId id : ids) {
    if (open_length_ == kLongestSequence) end_sequence();
    if (width_ == TokenWidth::uint16) {
      MEGALITH_ASSERT(id >= 0 && id <= std::numeric_limits<uint16_t>::max(), "id {} in a uint16 shard", id);
      auto narrow = static_cast<uint16_t>(id);
      buffer_.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
    } else {
      buffer_.append(reinterpret_cast<const char*>(&id), sizeof id);
    }
    open_length_++;
    if (buffer_.size() >= kBufferBytes) flush();
  }
  tokens_ += static_cast<int64_t>(ids.size());
}

void ShardWriter::end_sequence() {
  lengths_.push_back(static_cast<int32_t>(open_length_));
  open_length_ = 0;
}

void ShardWriter::end_document() {
  end_sequence();
  document_starts_.push_back(static_cast<int64_t>(lengths_.size()));
  open_document_ = false;
}

void ShardWriter::flush() {
  for (std::string_view left = buffer_; !left.empty();) {
    ssize_t n = ::write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot_write(shard_file(prefix_, ".bin"), errno);
    left.remove_prefix(static_cast<size_t>(n));
  }
  buffer_.clear();
}

void ShardWriter::finish() {
  if (open_document_) end_document();
  flush();
  if (::fsync(fd_) != 0) cannot_write(shard_file(prefix_, ".bin"), errno);

  std::string index(kShardMagic);
  auto put = [&](auto value) { index.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(uint64_t{1});
  put(static_cast<uint8_t>(width_));
  put(static_cast<uint64_t>(lengths_.size()));
  put(static_cast<uint64_t>(document_starts_.size()));
  index.append(reinterpret_cast<const char*>(lengths_.data()), lengths_.size() * sizeof lengths_[0]);
  int64_t offset = 0;
  for (int32_t length : lengths_) {
    put(offset);
    offset += length * bytes_of(width_);
  }
  index.append(reinterpret_cast<const char*>(document_starts_.data()),
               document_starts_.size() * sizeof document_starts_[0]);

  // An index without its .bin, or with an older one, must never be seen: the old index goes first, the new
  // comes last.
  std::filesystem::path bin = shard_file(prefix_, ".bin"), idx = shard_file(prefix_, ".idx");
  if (::unlink(idx.c_str()) != 0 && errno != ENOENT) cannot_write(idx, errno);
  if (::rename(aside_.c_str(), bin.c_str()) != 0) cannot_write(bin, errno);
  finished_ = true;
  write_file_atomically(idx, index);
}

}  // namespace megalith

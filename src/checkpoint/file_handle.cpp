#include "checkpoint/file_handle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_file.h"

namespace megalith {

FileHandle FileHandle::open_to_read(const std::filesystem::path& path) {
  return FileHandle(open_regular_file(path), path);
}

FileHandle FileHandle::create(const std::filesystem::path& path) {
  FileHandle file(create_file(path), path);
  if (file.fd_ < 0) file.fail("create", errno);
  file.open_directly();
  return file;
}

FileHandle FileHandle::open_to_write(const std::filesystem::path& path) {
  FileHandle file(::open(path.c_str(), O_RDWR | O_CLOEXEC), path);
  if (file.fd_ < 0) file.fail("open", errno);
  file.open_directly();
  return file;
}

// Some file systems do not support direct writes: then all writes go through the page cache.
void FileHandle::open_directly() {
  direct_ = ::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  if (direct_ < 0 && is_machine_fault(errno)) fail("open", errno);
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
  if (direct_ >= 0) ::close(direct_);
}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), direct_(std::exchange(other.direct_, -1)), path_(std::move(other.path_)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(direct_, other.direct_);
  std::swap(path_, other.path_);
  return *this;
}

void FileHandle::fail(const char* verb, int error) const {
  throw Fault(fmt::format("{}: cannot {}: {}", path_.string(), verb, std::strerror(error)));
}

int64_t FileHandle::size() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail("read", errno);
  return status.st_size;
}

void FileHandle::read_at(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    ssize_t n = ::pread(fd_, out.data(), out.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", errno);
    if (n == 0)
      throw UserError({path_.string(), "", fmt::format("{} more bytes", out.size()),
                       fmt::format("the end of the file at byte {}", offset), "the file is truncated"});
    offset += n;
    out = out.subspan(static_cast<size_t>(n));
  }
}

void FileHandle::reserve(int64_t size) {
  if (const int error = reserve_space(fd_, size); error != 0) fail("write", error);
}

void FileHandle::write_at(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", errno);
    offset += n;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void FileHandle::write_direct(int64_t offset, std::span<const std::byte> bytes) {
  while (direct_ >= 0 && !bytes.empty()) {
    ssize_t n = ::pwrite(direct_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) break;  // some file systems (network, overlays) allow O_DIRECT in
                                                                   // open but not in write
    if (n < 0) fail("write", errno);
    const int64_t whole = n / kDirectAlign * kDirectAlign;  // up to where a direct write can continue
    if (whole == 0) break;
    offset += whole;
    bytes = bytes.subspan(static_cast<size_t>(whole));
  }
  if (bytes.empty()) return;
  write_at(offset, bytes);
  // Only a hint to begin writing now: sync() reports disk errors.
  ::sync_file_range(fd_, offset, std::ssize(bytes), SYNC_FILE_RANGE_WRITE);
}

void FileHandle::sync() {
  while (::fdatasync(fd_) != 0)
    if (errno != EINTR) fail("write", errno);
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace megalith

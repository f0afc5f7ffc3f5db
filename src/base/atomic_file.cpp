#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/new_file.h"

namespace megalith {
namespace {

constexpr size_t kBufferBytes = 1 << 18;

}  // namespace

void write_whole(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_cannot("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void write_whole_at(int descriptor, std::string_view bytes, int64_t offset, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_cannot("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
}

int reserve_space(int descriptor, int64_t bytes) {
  if (bytes == 0) return 0;
  int result;
  while ((result = ::fallocate(descriptor, 0, 0, bytes)) != 0 && errno == EINTR) {
  }
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), aside_(path_) {
  aside_ += fmt::format(".{}.tmp", random_hex(8));
  fd_ = create_file(aside_);
  if (fd_ < 0) throw_cannot("write", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!named_) delete_or_warn(aside_);
}

void AtomicFile::reserve(int64_t bytes) {
  if (const int error = reserve_space(fd_, bytes); error != 0) throw_cannot("write", path_, error);
}

void AtomicFile::put(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    write_whole(fd_, buffer_, path_);
    buffer_.clear();
  }
  if (bytes.size() > kBufferBytes) return write_whole(fd_, bytes, path_);
  buffer_ += bytes;
}

void AtomicFile::end() {
  write_whole(fd_, buffer_, path_);
  std::string().swap(buffer_);
  if (::fsync(fd_) != 0) throw_cannot("write", path_, errno);
  ::close(std::exchange(fd_, -1));
}

void AtomicFile::give_name() {
  if (::rename(aside_.c_str(), path_.c_str()) != 0) throw_cannot("write", path_, errno);
  named_ = true;
}

bool AtomicFile::give_name_if_free() {
  if (::link(aside_.c_str(), path_.c_str()) == 0) return true;  // the destructor removes the other name
  if (errno != EEXIST) throw_cannot("write", path_, errno);
  return false;
}

}  // namespace megalith

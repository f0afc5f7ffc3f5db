#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

struct Descriptor {  // closes on every way out
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void cannot(const char* verb, const std::filesystem::path& path, int error) {
  std::string reason = std::strerror(error);
  if (error == ENOSPC || error == EIO || error == EDQUOT)
    throw Fault(fmt::format("{}: cannot {}: {}", path.string(), verb, reason));
  throw UserError({path.string(), "", "", "", fmt::format("cannot {}: {}", verb, reason)});
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) cannot("read", path, errno);
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n == 0) return content;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot("read", path, errno);
    content.append(buffer, static_cast<size_t>(n));
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path aside = path;
  aside += fmt::format(".{}.tmp", ::getpid());
  {
    Descriptor file{::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.fd < 0) cannot("write", path, errno);
    auto give_up = [&](int error) {
      ::unlink(aside.c_str());
      cannot("write", path, error);
    };
    while (!content.empty()) {
      ssize_t n = ::write(file.fd, content.data(), content.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) give_up(errno);
      content.remove_prefix(static_cast<size_t>(n));
    }
    if (::fsync(file.fd) != 0) give_up(errno);
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    int error = errno;
    ::unlink(aside.c_str());
    cannot("write", path, error);
  }
  sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

void sync_directory(const std::filesystem::path& directory) {
  Descriptor dir{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (dir.fd >= 0) ::fsync(dir.fd);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) cannot("read", path, errno);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) cannot("read", path, errno);
  if (S_ISDIR(status.st_mode)) cannot("read", path, EISDIR);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (map == MAP_FAILED) cannot("map", path, errno);
  data_ = static_cast<const std::byte*>(map);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace megalith

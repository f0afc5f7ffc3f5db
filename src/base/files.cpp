#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"

namespace megalith {
namespace {

struct Descriptor {  // closes on every way out
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

void throw_cannot(const char* verb, const std::filesystem::path& path, int error) {
  std::string reason = std::strerror(error);
  if (is_machine_fault(error)) throw Fault(fmt::format("{}: cannot {}: {}", path.string(), verb, reason));
  throw UserError({path.string(), "", "", "", fmt::format("cannot {}: {}", verb, reason)});
}

std::string read_file(const std::filesystem::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) throw_cannot("read", path, errno);
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n == 0) return content;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_cannot("read", path, errno);
    content.append(buffer, static_cast<size_t>(n));
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.put(content);
  file.end();
  file.give_name();
  sync_directory(path.parent_path());
}

bool write_file_if_absent(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.put(content);
  file.end();
  const bool written = file.give_name_if_free();
  if (written) sync_directory(path.parent_path());
  return written;
}

void sync_directory(const std::filesystem::path& directory) {
  Descriptor dir{::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (dir.fd >= 0) ::fsync(dir.fd);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe would wait for who writes it
  if (file.fd < 0) throw_cannot("read", path, errno);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) throw_cannot("read", path, errno);
  if (S_ISDIR(status.st_mode)) throw_cannot("read", path, EISDIR);
  if (!S_ISREG(status.st_mode))
    throw UserError({path.string(), "", "a file", "a pipe or a device", "write what it gives to a file first"});
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (map == MAP_FAILED) throw_cannot("map", path, errno);
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

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
#include "base/log.h"
#include "base/similar_file.h"

namespace megalith {
namespace {

struct Descriptor {  // closes its file on destruction
  explicit Descriptor(int descriptor) : fd(descriptor) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

// The maximum number of bytes to read from a pipe. Files of settings, prompts or vocabularies are smaller.
constexpr size_t kMostFromPipe = size_t{1} << 28;

// True if the path names a descriptor that this process was started with, rather than a pipe in a folder.
bool names_descriptor(const std::filesystem::path& path) {
  const std::string name = path.string();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

void expect_regular(const std::filesystem::path& path, mode_t mode) {
  if (S_ISDIR(mode)) throw_cannot("read", path, EISDIR);
  if (!S_ISREG(mode))
    throw UserError({path.string(), "", "a regular file", "a pipe or a device", "write its output to a file first"});
}

[[noreturn]] void throw_missing(const std::filesystem::path& path) {
  throw UserError({path.string(), "", "", "",
                   fmt::format("cannot read: {}; {}", std::strerror(ENOENT), where_it_may_be(path))});
}

struct stat status_of(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (file.fd < 0 && errno == ENOENT) throw_missing(path);
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) throw_cannot("read", path, errno);
  return status;
}

// Opens the file. If the path is a pipe, does not wait for a process that writes to it.
Descriptor open_at_once(const std::filesystem::path& path) {
  return Descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
}

}  // namespace

void throw_cannot(const char* verb, const std::filesystem::path& path, int error) {
  std::string reason = std::strerror(error);
  if (is_machine_fault(error)) throw Fault(fmt::format("{}: cannot {}: {}", path.string(), verb, reason));
  throw UserError({path.string(), "", "", "", fmt::format("cannot {}: {}", verb, reason)});
}

int open_regular_file(const std::filesystem::path& path) {
  Descriptor file = open_at_once(path);
  expect_regular(path, status_of(file, path).st_mode);
  return std::exchange(file.fd, -1);
}

std::string read_file(const std::filesystem::path& path) {
  Descriptor file = open_at_once(path);
  const mode_t mode = status_of(file, path).st_mode;
  const bool pipe = names_descriptor(path) && (S_ISFIFO(mode) || ::isatty(file.fd));
  if (!pipe) expect_regular(path, mode);
  else if (::fcntl(file.fd, F_SETFL, 0) != 0) throw_cannot("read", path, errno);  // reads now wait for data
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n == 0) return content;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_cannot("read", path, errno);
    content.append(buffer, static_cast<size_t>(n));
    if (pipe && content.size() > kMostFromPipe)
      throw UserError({path.string(), "", fmt::format("at most {} MiB from a pipe", kMostFromPipe >> 20), "more",
                       "write its output to a file first"});
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

void delete_or_warn(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove(path, failed);
  if (failed && failed != std::errc::directory_not_empty)
    log::warn("{}: cannot delete: {}", path.string(), failed.message());
}

void sync_directory(const std::filesystem::path& directory) {
  const Descriptor dir(::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.fd >= 0 && ::fsync(dir.fd) != 0 && is_machine_fault(errno)) throw_cannot("sync", directory, errno);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(open_regular_file(path));
  const struct stat status = status_of(file, path);
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

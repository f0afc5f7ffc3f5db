#include "base/new_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace megalith {

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::getrandom(random.data() + done, bytes - done, 0);
    if (got < 0 && errno != EINTR)
      throw Fault(fmt::format("cannot get random numbers from the kernel: {}", std::strerror(errno)));
    if (got > 0) done += static_cast<size_t>(got);
  }
  std::string text;
  for (unsigned char each : random) text += fmt::format("{:02x}", each);
  return text;
}

int create_file(const std::filesystem::path& path, mode_t mode) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int open_or_create_file(const std::filesystem::path& path, mode_t mode) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode);
  struct stat info {};
  if (fd < 0 || (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode))) return fd;
  ::close(fd);
  errno = EEXIST;
  return -1;
}

namespace {

// Says why the folder is not private. Empty if only this user can enter it.
std::string why_not_private(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISDIR(info.st_mode)) return "it exists and is not a folder";
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  return (info.st_mode & 077) != 0 ? "other users can enter it" : "";
}

}  // namespace

bool is_private_folder(const std::filesystem::path& path) { return why_not_private(path).empty(); }

void make_private_folder(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return;
  const std::string problem = errno == EEXIST ? why_not_private(path) : std::strerror(errno);
  if (!problem.empty()) throw Fault(fmt::format("cannot create the private folder {}: {}", path.string(), problem));
}

}  // namespace megalith

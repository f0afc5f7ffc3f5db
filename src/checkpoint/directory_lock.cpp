#include "checkpoint/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace megalith {

DirectoryLock::DirectoryLock(const std::filesystem::path& dir)
    : fd_(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  held_ = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace megalith

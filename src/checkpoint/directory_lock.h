// Tells a directory that somebody is writing from one that a dead process left: the kernel drops the lock
// with its holder, whatever process id that had, on whatever container.
#pragma once
#include <filesystem>

namespace megalith {

class DirectoryLock {
 public:
  // Tries once, does not wait.
  explicit DirectoryLock(const std::filesystem::path& dir);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  // False: somebody else holds it, or the file system has no locks (then nothing there is ever taken for
  // dead).
  bool held() const { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

}  // namespace megalith

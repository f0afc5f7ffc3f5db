// Distinguishes a directory that a process is writing from a directory that a dead process left. The kernel releases the
// lock when its holder ends. So this works with any process ids and containers.
#pragma once
#include <filesystem>

namespace megalith {

class DirectoryLock {
 public:
  // Tries once and does not wait.
  explicit DirectoryLock(const std::filesystem::path& dir);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  // False if another process holds the lock, or the file system has no locks. In the second case no directory counts as
  // left by a dead process.
  bool held() const { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

}  // namespace megalith

#include "run/run_directory.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/new_file.h"

namespace megalith {

RunDirectory::RunDirectory(const std::filesystem::path& path, bool leads) : path_(path) {
  if (!leads) return;
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  auto refuse = [&](const std::string& reason) {
    throw UserError({"", "run.dir", "a directory that can be written", path_.string(), reason});
  };
  if (error) refuse(error.message());
  lock_ = open_or_create_file(path_ / ".lock");
  if (lock_ < 0) refuse(std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    lock_ = -1;
    throw UserError({"", "run.dir", "a directory that no other process trains in", path_.string(),
                     "another process is training there: wait for it, or choose another run.dir"});
  }
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace megalith

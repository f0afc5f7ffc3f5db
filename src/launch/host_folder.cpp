#include "launch/host_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/new_file.h"
#include "launch/environment.h"

namespace megalith::launch {
namespace {

constexpr const char* kLock = "lock";

std::filesystem::path base() {
  if (::access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  return std::filesystem::temp_directory_path();
}

std::string prefix() { return fmt::format("megalith-{}-", ::getuid()); }

}  // namespace

std::filesystem::path run_folder_path(const std::string& run) { return base() / (prefix() + run); }

std::filesystem::path host_folder_path(const std::string& run) { return run_folder_path(run) / host_name(); }

std::filesystem::path make_host_folder(const std::string& run) {
  make_private_folder(run_folder_path(run));
  make_private_folder(host_folder_path(run));
  return host_folder_path(run);
}

HostFolder::HostFolder(const std::string& run) : path_(make_host_folder(run)) {
  lock_ = open_or_create_file(path_ / kLock, kPrivateMode);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  if (lock_ >= 0) ::close(lock_);
  throw Fault(fmt::format("cannot use folder {} for the status of this run: {}", path_.string(), std::strerror(error)));
}

HostFolder::~HostFolder() {
  if (lock_ >= 0) ::close(lock_);
}

void HostFolder::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  std::filesystem::remove_all(path_.parent_path() / fmt::format("ompi.{}.{}", host_name(), ::geteuid()), ignored);
  std::filesystem::remove(path_.parent_path(), ignored);  // fails if another host's folder is in it
}

void remove_left_over_folders() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base(), error)) {
    if (!entry.path().filename().string().starts_with(prefix()) || !is_private_folder(entry.path())) continue;
    int held = 0, free = 0;
    std::error_code ignored;
    for (const auto& host : std::filesystem::directory_iterator(entry.path(), ignored)) {
      const int lock = ::open((host.path() / kLock).c_str(), O_RDWR | O_CLOEXEC);
      if (lock < 0) continue;
      ::flock(lock, LOCK_EX | LOCK_NB) == 0 ? free++ : held++;
      ::close(lock);
    }
    if (free > 0 && held == 0) std::filesystem::remove_all(entry.path(), ignored);  // no lock yet: it is being created
  }
}

std::string new_run_name() { return fmt::format("{}-{}", ::getpid(), random_hex(8)); }

}  // namespace megalith::launch

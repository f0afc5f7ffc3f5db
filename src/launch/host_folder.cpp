#include "launch/host_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "base/error.h"
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

std::filesystem::path run_folder_path(const std::string& token) { return base() / (prefix() + token); }

std::filesystem::path host_folder_path(const std::string& token) { return run_folder_path(token) / host_name(); }

HostFolder::HostFolder(const std::string& token) : path_(host_folder_path(token)) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (!error) std::filesystem::permissions(path_.parent_path(), std::filesystem::perms::owner_all, error);
  if (!error) {
    lock_ = ::open((path_ / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) error.assign(errno, std::generic_category());
  }
  if (error) throw Fault(fmt::format("folder {} for this run's status: {}", path_.string(), error.message()));
}

HostFolder::~HostFolder() {
  if (lock_ >= 0) ::close(lock_);
}

void HostFolder::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  std::filesystem::remove_all(path_.parent_path() / fmt::format("ompi.{}.{}", host_name(), ::geteuid()), ignored);
  std::filesystem::remove(path_.parent_path(), ignored);  // unless another host's part is in it
}

void remove_left_over_folders() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base(), error)) {
    if (!entry.path().filename().string().starts_with(prefix())) continue;
    int held = 0, free = 0;
    std::error_code ignored;
    for (const auto& host : std::filesystem::directory_iterator(entry.path(), ignored)) {
      const int lock = ::open((host.path() / kLock).c_str(), O_RDWR | O_CLOEXEC);
      if (lock < 0) continue;
      ::flock(lock, LOCK_EX | LOCK_NB) == 0 ? free++ : held++;
      ::close(lock);
    }
    if (free > 0 && held == 0) std::filesystem::remove_all(entry.path(), ignored);  // without locks: being made
  }
}

std::string new_token() {
  std::random_device random;
  return fmt::format("{}-{:08x}{:08x}", ::getpid(), random(), random());
}

}  // namespace megalith::launch

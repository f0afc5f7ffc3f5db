#include "memory/spill_folder.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/new_file.h"
#include "base/units.h"

namespace megalith {
namespace {

constexpr std::string_view kLockName = "lock.megalith-spill-folder";

[[noreturn]] void refuse_folder(const std::filesystem::path& folder, std::string expected, std::string_view got,
                                std::string hint = "") {
  throw UserError({"", "memory.spill", std::move(expected), fmt::format("{}: {}", folder.string(), got),
                   std::move(hint)});
}

// Describes the process that holds the lock, according to the lock file. Used only in the message.
std::string holder(int descriptor) {
  char text[32] = {};
  ssize_t n = ::pread(descriptor, text, sizeof text - 1, 0);
  return n > 0 ? fmt::format("in use by another run (process {})", text) : "in use by another run";
}

bool same_file(int descriptor, const std::filesystem::path& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

}  // namespace

void check_spill_folder(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(folder);
  for (std::filesystem::path part = whole; part.has_relative_path(); part = part.parent_path())
    if (std::filesystem::exists(part, error)) {
      if (std::filesystem::is_directory(part, error)) return;
      refuse_folder(folder, "a folder", part == whole ? "a file" : part.string() + " is a file", "use another path");
    }
}

SpillFolder::SpillFolder(std::filesystem::path folder, DiskWays allowed)
    : folder_(std::filesystem::absolute(std::move(folder))) {
  check_spill_folder(folder_);
  std::error_code error;
  made_ = std::filesystem::create_directories(folder_, error);
  if (error && is_machine_fault(error.value())) throw_cannot("create", folder_, error.value());
  if (error) refuse_folder(folder_, "a folder", error.message(), "use another path");
  lock();
  try {
    remove_leftovers();
    way_ = choose_io_method(folder_, allowed);
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

// The lock is a kernel lock on a file of our own, so it ends with the process, even if the process is killed. A run that
// ends normally also deletes the file. So a lock counts only while the file still has its name.
void SpillFolder::lock() {
  const auto path = folder_ / kLockName;
  while (true) {
    lock_ = open_or_create_file(path);
    if (lock_ < 0 && is_machine_fault(errno)) throw_cannot("open", path, errno);
    if (lock_ < 0)
      refuse_folder(folder_, "a writable folder", std::strerror(errno), "change its permissions, or use another folder");
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      const std::string got =
          error == EWOULDBLOCK ? holder(lock_) : fmt::format("cannot lock: {}", std::strerror(error));
      ::close(lock_);
      if (error == EINTR) continue;
      refuse_folder(folder_, "a folder that no other run uses", got, "give every run its own folder");
    }
    if (same_file(lock_, path)) break;
    ::close(lock_);
  }
  // The lock is valid without its text. Only a message to another process needs the process id.
  const std::string pid = fmt::format("{}", ::getpid());
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, pid.data(), pid.size(), 0) < 0)
    log::warn("{}: cannot write: {}; other runs cannot tell which process uses this folder", path.string(),
              std::strerror(errno));
}

SpillFolder::~SpillFolder() {
  delete_or_warn(folder_ / kLockName);
  ::close(lock_);
  if (made_) delete_or_warn(folder_);
}

// Spill files are unlinked right after they are opened. These files are from a run that was killed in between.
void SpillFolder::remove_leftovers() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error))
    if (entry.is_regular_file(error) && entry.path().filename().string().ends_with(kSpillSuffix))
      delete_or_warn(entry.path());
}

void SpillFolder::require(int64_t bytes) const {
  struct statvfs room {};
  if (::statvfs(folder_.c_str(), &room) != 0)
    throw Fault(fmt::format("{}: {}", folder_.string(), std::strerror(errno)));
  const auto free = static_cast<int64_t>(room.f_bavail * room.f_frsize);
  if (free < bytes)
    refuse_folder(folder_, fmt::format("a disk with {} free", show(Bytes(bytes))), show(Bytes(free)) + " free",
           "free some space or choose another disk");
}

std::unique_ptr<SpillFile> SpillFolder::make(std::string_view name, int64_t bytes, int64_t unit) const {
  return std::make_unique<SpillFile>(folder_ / fmt::format("{}{}", name, kSpillSuffix), bytes, way_, unit);
}

}  // namespace megalith

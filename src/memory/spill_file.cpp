#include "memory/spill_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/checksum.h"
#include "base/error.h"
#include "base/units.h"

namespace megalith {
namespace {

// -1 where the system does not say.
int64_t free_bytes(const std::filesystem::path& folder) {
  struct statvfs room {};
  return ::statvfs(folder.c_str(), &room) == 0 ? static_cast<int64_t>(room.f_bavail * room.f_frsize) : -1;
}

// errno, or 0. The kernel would first fill the disk, under everybody's feet, and then give up: so it is asked
// before.
int take_space(int descriptor, int64_t bytes, int64_t free) {
  if (free >= 0 && free < bytes) return ENOSPC;
  int result;
  while ((result = ::fallocate(descriptor, 0, 0, bytes)) != 0 && errno == EINTR) {
  }
  // Where a file system cannot reserve, a full disk shows while writing instead.
  if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) result = ::ftruncate(descriptor, bytes);
  return result == 0 ? 0 : errno;
}

}  // namespace

SpillFile::SpillFile(std::filesystem::path path, int64_t bytes, const DiskWay& way, int64_t unit)
    : path_(std::move(path)), bytes_((bytes + kDiskAlign - 1) / kDiskAlign * kDiskAlign), unit_(unit) {
  MEGALITH_ASSERT(bytes > 0 && unit > 0 && unit % kDiskAlign == 0);
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | (way.direct ? O_DIRECT : 0);
  descriptor_ = ::open(path_.c_str(), flags, 0600);
  if (descriptor_ < 0)
    throw UserError({"", "memory.spill", "a folder to write to",
                     fmt::format("{}: {}", path_.string(), std::strerror(errno)), ""});
  ::unlink(path_.c_str());
  const auto folder = path_.parent_path();
  const int64_t free = free_bytes(folder);
  if (int error = take_space(descriptor_, bytes_, free)) {
    ::close(descriptor_);  // the destructor of an object that was never made does not run
    if (error != ENOSPC && error != EDQUOT && error != EFBIG)
      throw Fault(fmt::format("spill file {}: cannot take {}: {}", path_.string(), show(Bytes(bytes_)),
                              std::strerror(error)));
    throw UserError(
        {"", "memory.spill",
         fmt::format("a disk with room for {} ({})", show(Bytes(bytes_)), path_.filename().string()),
         fmt::format("{}: {}, {}", folder.string(), std::strerror(error),
                     free >= 0 ? show(Bytes(free)) + " free" : "how much is free is not known"),
         "free some space or choose another disk"});
  }
  written_.resize(static_cast<size_t>((bytes_ + unit_ - 1) / unit_));
}

SpillFile::~SpillFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SpillFile::remember(int64_t offset, std::span<const std::byte> chunk) {
  written_[static_cast<size_t>(offset / unit_)] = {xxh3(chunk), static_cast<int64_t>(chunk.size())};
}

int64_t SpillFile::written_length(int64_t offset) const {
  return written_[static_cast<size_t>(offset / unit_)].length;
}

void SpillFile::check(int64_t offset, std::span<const std::byte> chunk) const {
  const Written& written = written_[static_cast<size_t>(offset / unit_)];
  const uint64_t hash = xxh3(chunk);
  if (hash != written.hash)
    throw Fault(fmt::format(
        "spill file {}, chunk at {} does not hold what was written: checksum {:016x}, expected {:016x}; "
        "the disk, its memory or another program changed it",
        path_.string(), offset, hash, written.hash));
}

}  // namespace megalith

#include "memory/spill_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"
#include "base/units.h"

namespace megalith {
namespace {

// Returns -1 if the system does not say.
int64_t free_bytes(const std::filesystem::path& folder) {
  struct statvfs room {};
  return ::statvfs(folder.c_str(), &room) == 0 ? static_cast<int64_t>(room.f_bavail * room.f_frsize) : -1;
}

// Returns errno, or 0. Compares with the free space first: the kernel would fill the disk before it gives up, which
// harms other programs.
int take_space(int descriptor, int64_t bytes, int64_t free) {
  if (free >= 0 && free < bytes) return ENOSPC;
  int result;
  while ((result = ::fallocate(descriptor, 0, 0, bytes)) != 0 && errno == EINTR) {
  }
  // If a file system cannot reserve space, a full disk is noticed only while writing.
  if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) result = ::ftruncate(descriptor, bytes);
  return result == 0 ? 0 : errno;
}

}  // namespace

SpillFile::SpillFile(std::filesystem::path path, int64_t bytes, const IoMethod& way, int64_t unit)
    : path_(std::move(path)), bytes_((bytes + kDiskAlign - 1) / kDiskAlign * kDiskAlign), unit_(unit) {
  MEGALITH_ASSERT(bytes > 0 && unit > 0 && unit % kDiskAlign == 0);
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | (way.direct ? O_DIRECT : 0);
  descriptor_ = ::open(path_.c_str(), flags, 0600);
  if (descriptor_ < 0 && is_machine_fault(errno)) throw_cannot("open", path_, errno);
  if (descriptor_ < 0)
    throw UserError({"", "memory.spill", "a writable folder",
                     fmt::format("{}: {}", path_.string(), std::strerror(errno)),
                     "change its permissions, or use another folder"});
  delete_or_warn(path_);
  const auto folder = path_.parent_path();
  const int64_t free = free_bytes(folder);
  if (int error = take_space(descriptor_, bytes_, free)) {
    ::close(descriptor_);  // no destructor runs, as the constructor throws
    if (error != ENOSPC && error != EDQUOT && error != EFBIG)
      throw Fault(fmt::format("spill file {}: cannot reserve {}: {}", path_.string(), show(Bytes(bytes_)),
                              std::strerror(error)));
    throw UserError(
        {"", "memory.spill",
         fmt::format("a disk with room for {} ({})", show(Bytes(bytes_)), path_.filename().string()),
         fmt::format("{}: {}, {}", folder.string(), std::strerror(error),
                     free >= 0 ? show(Bytes(free)) + " free" : "free space unknown"),
         "free some space or choose another disk"});
  }
  written_.resize(static_cast<size_t>((bytes_ + unit_ - 1) / unit_ * tiles()));
}

SpillFile::~SpillFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

size_t SpillFile::tile_at(int64_t offset) const {
  MEGALITH_ASSERT(offset % unit_ % kSpillTile == 0, "no tile begins at {}", offset);
  return static_cast<size_t>(offset / unit_ * tiles() + offset % unit_ / kSpillTile);
}

void SpillFile::remember(int64_t offset, std::span<const std::byte> bytes) {
  size_t tile = tile_at(offset);
  for (size_t at = 0; at < bytes.size(); at += kSpillTile) {
    const std::span<const std::byte> here = bytes.subspan(at, std::min<size_t>(kSpillTile, bytes.size() - at));
    written_[tile++] = {xxh3(here), std::ssize(here)};
  }
}

void SpillFile::check(int64_t offset, std::span<const std::byte> bytes) const {
  size_t tile = tile_at(offset);
  for (size_t at = 0; at < bytes.size(); at += kSpillTile) {
    const std::span<const std::byte> here = bytes.subspan(at, std::min<size_t>(kSpillTile, bytes.size() - at));
    const uint64_t hash = xxh3(here), expected = written_[tile++].hash;
    if (hash != expected)
      throw Fault(fmt::format(
          "spill file {}, chunk at byte {}: the data read differs from the data written (checksum {:016x}, expected "
          "{:016x}); the disk, the memory or another program changed it",
          path_.string(), offset + static_cast<int64_t>(at), hash, expected));
  }
}

bool SpillFile::holds(int64_t offset, int64_t length) const {
  size_t tile = tile_at(offset);
  for (int64_t at = 0; at < length; at += kSpillTile)
    if (written_[tile++].length != std::min(kSpillTile, length - at)) return false;
  return true;
}

}  // namespace megalith

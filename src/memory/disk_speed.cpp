#include "memory/disk_speed.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/new_file.h"
#include "base/start_threads.h"
#include "base/stopwatch.h"
#include "memory/disk_queue.h"
#include "memory/spill_folder.h"

namespace megalith {
namespace {

constexpr int64_t kExtent = 16 * kSpillChunk;     // bytes of one transfer: about what a run requests at a time
constexpr int64_t kLargest = int64_t{2} << 30;    // bytes; more than the caches of a disk hold for long
constexpr int64_t kInMemory = int64_t{64} << 20;  // bytes; for a disk in memory, which may be scarce

// Core seconds of all threads of the process.
struct CoreSeconds {
  double all = 0, kernel = 0;
};

CoreSeconds core_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {seconds(used.ru_utime) + seconds(used.ru_stime), seconds(used.ru_stime)};
}

// Two extents on huge pages: one is in flight while the next is requested.
class Buffers {
 public:
  Buffers() {
    constexpr size_t kHuge = size_t{2} << 20;
    mapped_ = ::mmap(nullptr, kBytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw Fault("not enough memory to measure the disk");
    auto address = reinterpret_cast<uintptr_t>(mapped_);
    data_ = reinterpret_cast<std::byte*>((address + kHuge - 1) / kHuge * kHuge);
    ::madvise(data_, kBytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < kBytes; i++) data_[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  }
  ~Buffers() { ::munmap(mapped_, kBytes + (size_t{2} << 20)); }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  std::span<std::byte> extent(int64_t which) {
    return {data_ + (which % 2) * kExtent, static_cast<size_t>(kExtent)};
  }

 private:
  static constexpr size_t kBytes = 2 * kExtent;
  void* mapped_ = nullptr;
  std::byte* data_ = nullptr;
};

// Moves [begin, end) of the file repeatedly, requesting one extent in advance, until the time is over. With `once`,
// stops at the end of the range. Returns the bytes moved.
int64_t go_over(SpillFile& file, const IoMethod& way, int64_t begin, int64_t end, bool write, double seconds,
                bool once = false) {
  auto queue = make_disk_queue(way, kSpillDepth);
  Buffers buffers;
  const Stopwatch watch;
  int64_t moved = 0;
  DiskQueue::Ticket before = 0;
  for (int64_t i = 0, offset = begin; watch.seconds() < seconds; i++, offset += kExtent) {
    if (offset + kExtent > end) {
      if (once) break;
      offset = begin;
    }
    auto ticket =
        write ? queue->write(file, offset, buffers.extent(i)) : queue->read(file, offset, buffers.extent(i));
    if (before) queue->wait(before);
    before = ticket;
    moved += kExtent;
  }
  queue->wait_all();
  return moved;
}

int64_t size_to_measure(const std::filesystem::path& folder) {
  struct statfs about {};
  if (::statfs(folder.c_str(), &about) != 0) return kInMemory;
  const auto free = static_cast<int64_t>(about.f_bavail) * about.f_bsize;
  const int64_t most = about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC ? kInMemory : kLargest;
  return std::max(2 * kExtent, std::min(most, free / 2)) / kExtent * kExtent;
}

}  // namespace

DiskSpeed measure_disk(const std::filesystem::path& folder, const IoMethod& way, double seconds) {
  SpillFile file(folder / fmt::format("speed-{}{}", random_hex(8), kSpillSuffix),
                 size_to_measure(folder), way);
  // The first pass is slower than all later ones: the file system records that there is data now.
  const int64_t bytes = std::max(2 * kExtent, go_over(file, way, 0, file.bytes(), true, 2 * seconds, true));
  auto speed = [&](bool write) {
    const Stopwatch watch;
    const int64_t moved = go_over(file, way, 0, bytes, write, seconds);
    return static_cast<double>(moved) / watch.seconds();
  };
  DiskSpeed result;
  result.read = speed(false);
  result.write = speed(true);

  const int64_t half = bytes / 2 / kExtent * kExtent;
  int64_t read = 0;
  std::exception_ptr failure;
  const Stopwatch watch;
  const CoreSeconds before = core_seconds();
  std::thread reader = start_thread([&] {
    try {
      read = go_over(file, way, 0, half, false, seconds);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  int64_t written = 0;
  try {
    written = go_over(file, way, half, bytes, true, seconds);
  } catch (...) {
    failure = std::current_exception();
  }
  reader.join();
  if (failure) std::rethrow_exception(failure);
  // Twice the slower of the two, as a step reads as many bytes as it writes.
  result.mixed = 2 * static_cast<double>(std::min(read, written)) / watch.seconds();
  const CoreSeconds after = core_seconds();
  const auto moved = static_cast<double>(std::max<int64_t>(1, read + written));
  result.core_s = (after.all - before.all) / moved;
  result.kernel_s = std::max(1e-15, after.kernel - before.kernel) / moved;  // a coarse clock may give 0
  return result;
}

std::string disk_identity(const std::filesystem::path& folder) {
  struct statfs about {};
  struct stat status {};
  if (::statfs(folder.c_str(), &about) != 0 || ::stat(folder.c_str(), &status) != 0) return folder.string();
  uint64_t id = 0;
  static_assert(sizeof about.f_fsid >= sizeof id);
  std::memcpy(&id, &about.f_fsid, sizeof id);
  return fmt::format("{:x}", id ? id : status.st_dev);
}

}  // namespace megalith

#include "memory/io_method.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/new_file.h"
#include "memory/disk_queue.h"
#include "memory/spill_folder.h"

namespace megalith {
namespace {

std::string name_of_way(const IoMethod& way) {
  return fmt::format("{}, {}", way.uring ? "io_uring" : "threads",
                     way.direct ? "direct" : "through the page cache");
}

// Writes three requests of two lengths, clears the memory, and reads them back. Throws if anything fails.
void try_way(const std::filesystem::path& folder, const IoMethod& way) {
  constexpr int64_t kBytes = 2 * kSpillChunk + kDiskAlign;
  SpillFile file(folder / fmt::format("try-{}{}", random_hex(8), kSpillSuffix), kBytes, way);
  std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(kDiskAlign, kBytes), std::free);
  MEGALITH_ASSERT(memory);
  std::span<std::byte> bytes(static_cast<std::byte*>(memory.get()), kBytes);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  auto queue = make_disk_queue(way, 4);
  queue->wait(queue->write(file, 0, bytes));
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  queue->wait(queue->read(file, 0, bytes));
}

}  // namespace

std::string describe(const IoMethod& way) {
  return name_of_way(way) + (way.why.empty() ? "" : fmt::format(" ({})", way.why));
}

IoMethod choose_io_method(const std::filesystem::path& folder, DiskWays allowed) {
  std::string failed;
  for (IoMethod way : {IoMethod{true, true, ""}, IoMethod{false, true, ""}, IoMethod{false, false, ""},
                      IoMethod{true, false, ""}}) {
    if ((way.uring && !allowed.uring) || (way.direct && !allowed.direct)) continue;
    try {
      try_way(folder, way);
      way.why = failed;
      return way;
    } catch (const std::runtime_error& error) {
      failed += fmt::format("{}{}: {}", failed.empty() ? "" : "; ", name_of_way(way), error.what());
    }
  }
  throw UserError({"", "memory.spill", "a folder on a disk that can be written and read",
                   fmt::format("{}: {}", folder.string(), failed), "use a folder on another disk"});
}

}  // namespace megalith

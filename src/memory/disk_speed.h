// Measures how fast the disk under a folder is, with the queues that a run uses.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "memory/io_method.h"

namespace megalith {

// Chunks in flight per queue. Enough for the time (about 10 ms) that the lane waits for a core or for threads that
// compute.
inline constexpr int kSpillDepth = 32;

// Sustained bytes per second, including checksums.
struct DiskSpeed {
  double read = 0;  // without writes at the same time
  double write = 0;
  double mixed = 0;  // equal amounts of reads and writes at the same time; the sum of both
  double core_s = 0;  // core seconds per byte: requests and checksums
  double kernel_s = 0;  // core seconds per byte inside the kernel: requests only
};

// Writes a file of up to 2 GiB (less on a small or slow disk) in at most twice `seconds`. Then it reads the file, writes
// it again, and does both at the same time on two queues, for about `seconds` each. Throws UserError (memory.spill) like
// SpillFile.
DiskSpeed measure_disk(const std::filesystem::path& folder, const IoMethod& way, double seconds = 1);

// Returns a name for the file system under a folder, the same in every run. Stored disk speeds are found by it.
std::string disk_identity(const std::filesystem::path& folder);

}  // namespace megalith

// How fast the disk under a folder is, measured with the queues that a run drives it with.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "memory/io_method.h"

namespace megalith {

// Chunks in flight a queue: enough while the lane waits, for a core or for those who compute, for some ten milliseconds.
inline constexpr int kSpillDepth = 32;

// Bytes a second, sustained, checksums included.
struct DiskSpeed {
  double read = 0;  // nothing else on the disk
  double write = 0;
  double mixed = 0;  // reads and writes together, as many of the one as of the other, both counted
  double core_s = 0;  // seconds of one core that a byte costs: requests and checksums,
  double kernel_s = 0;  // and of these the requests
};

// Writes a file of up to 2 GiB (on a small or slow disk less), then reads it, writes it again, and does both
// at the same time on two queues. About `seconds` for each of the four. UserError (memory.spill) as
// SpillFile.
DiskSpeed measure_disk(const std::filesystem::path& folder, const IoMethod& way, double seconds = 1);

// A name for the file system under a folder, the same in every run: what its speed is remembered by.
std::string disk_identity(const std::filesystem::path& folder);

}  // namespace megalith

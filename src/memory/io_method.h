// How the disk under a folder is driven. Chosen once by trying, then said and kept for the run.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

struct IoMethod {
  bool uring = false;   // io_uring; else a few threads with pread and pwrite
  bool direct = false;  // past the page cache (O_DIRECT); else through it
  std::string why;      // what the faster ways failed with; empty when this is the fastest
};

// "io_uring, direct", and the reason if it is not that.
std::string describe(const IoMethod& way);

// What choose_io_method may try; tests and comparisons leave ways out.
struct DiskWays {
  bool uring = true;
  bool direct = true;
};

// Writes a little to the folder in the fastest way allowed, reads it back and compares; where that fails, the
// next way: io_uring and direct, threads and direct, threads through the page cache (there io_uring gains
// nothing: the kernel copies on threads of its own, one file's writes one after the other), io_uring through
// the page cache. UserError (memory.spill) when none works.
IoMethod choose_io_method(const std::filesystem::path& folder, DiskWays allowed = {});

}  // namespace megalith

// How to access the disk under a folder. Chosen once by trying, then logged and kept for the run.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

struct IoMethod {
  bool uring = false;   // io_uring; otherwise a few threads with pread and pwrite
  bool direct = false;  // bypasses the page cache (O_DIRECT); otherwise uses it
  std::string why;      // why the faster methods failed; empty if this is the fastest
};

// Returns "io_uring, direct" or similar, with the reason if it is not the fastest.
std::string describe(const IoMethod& way);

// The methods that choose_io_method may try. Tests and comparisons exclude some.
struct DiskWays {
  bool uring = true;
  bool direct = true;
};

// Writes a little data to the folder with the fastest method allowed, reads it back and compares. If that fails, tries
// the next method: io_uring and direct; threads and direct; threads through the page cache; io_uring through the page
// cache. With the page cache io_uring is not faster than threads: the kernel copies on its own threads, and writes to
// one file one after another. Throws UserError (memory.spill) if no method works.
IoMethod choose_io_method(const std::filesystem::path& folder, DiskWays allowed = {});

}  // namespace megalith

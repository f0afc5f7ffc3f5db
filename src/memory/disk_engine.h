// Moves bytes between memory and files, several transfers at a time. This is the part of a disk queue that depends on
// the I/O method.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/io_method.h"

namespace megalith {

struct Transfer {
  int descriptor = -1;
  bool write = false;
  int64_t offset = 0;
  std::byte* data = nullptr;  // only read from if `write`
  int64_t length = 0;
};

// Used by one thread at a time. Never has more transfers in flight than the depth it was created for.
class DiskEngine {
 public:
  virtual ~DiskEngine() = default;
  // Accepts a transfer. It may not begin before the next submit() or finish().
  virtual void start(const Transfer& transfer, uint64_t tag) = 0;
  virtual void submit() = 0;
  struct Done {
    uint64_t tag = 0;
    int64_t result = 0;  // bytes moved, perhaps fewer than requested, or minus errno
  };
  // Sleeps until a transfer ends and returns it. Call it only with a transfer in flight.
  virtual Done finish() = 0;
};

// Throws Fault if the kernel does not allow io_uring.
std::unique_ptr<DiskEngine> make_uring_engine(int depth);
std::unique_ptr<DiskEngine> make_thread_engine(int depth);

}  // namespace megalith

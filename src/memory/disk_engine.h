// Moves bytes between memory and files, several transfers at a time: the part of a disk queue that differs by
// way.
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
  std::byte* data = nullptr;  // only read from when `write`
  int64_t length = 0;
};

// Used by one thread at a time. Never more transfers in flight than the depth it was made for.
class DiskEngine {
 public:
  virtual ~DiskEngine() = default;
  // Accepts a transfer; it may rest until the next submit() or finish().
  virtual void start(const Transfer& transfer, uint64_t tag) = 0;
  virtual void submit() = 0;
  struct Done {
    uint64_t tag = 0;
    int64_t result = 0;  // bytes moved, perhaps fewer than asked for, or minus errno
  };
  // Sleeps until a transfer ends and returns it. Only with a transfer in flight.
  virtual Done finish() = 0;
};

// Throws Fault where the kernel does not let us have io_uring.
std::unique_ptr<DiskEngine> make_uring_engine(int depth);
std::unique_ptr<DiskEngine> make_thread_engine(int depth);

}  // namespace megalith

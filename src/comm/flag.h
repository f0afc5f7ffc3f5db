// A counter in shared memory. One side raises it; others wait for it, in any process of the host.
#pragma once
#include <atomic>
#include <cstdint>

#include "comm/backoff.h"

namespace megalith {

// All zeroes is the valid initial state. Counts wrap around: only differences below 2^31 are compared.
struct alignas(64) Flag {
  std::atomic<uint32_t> count;
  std::atomic<uint32_t> sleepers;

  bool reached(uint32_t target) const {
    return static_cast<int32_t>(count.load(std::memory_order_acquire) - target) >= 0;
  }
  // A thread that sees the new count also sees everything written before.
  void raise(uint32_t to);
  // Sleeps until the count changes, the flag is raised, or 20 ms have passed.
  void sleep(uint32_t target);
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

inline void await(Flag& flag, uint32_t target, const WaitControl& control, const char* what,
                  const std::string& channel, int peer) {
  if (flag.reached(target)) return;
  Backoff patience(control, what, channel, peer);
  while (!flag.reached(target)) {
    if (!patience.looks_again()) flag.sleep(target);
  }
}

}  // namespace megalith

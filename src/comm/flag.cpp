#include "comm/flag.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace megalith {

// A sleeper increments `sleepers` before it reads `count` for the last time. A raiser writes `count` before it reads
// `sleepers`. These four accesses are sequentially consistent, so at least one side sees the other.
void Flag::raise(uint32_t to) {
  count.store(to, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0) {
    syscall(SYS_futex, &count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

void Flag::sleep(uint32_t target) {
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  const uint32_t seen = count.load(std::memory_order_seq_cst);
  if (static_cast<int32_t>(seen - target) < 0) {
    const timespec moment{0, 20'000'000};
    syscall(SYS_futex, &count, FUTEX_WAIT, seen, &moment, nullptr, 0);
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace megalith

// How a thread waits for another rank: it spins shortly, then yields, then sleeps, so that waiting takes nothing
// from those who compute. A wait can be seen from outside (who waits for whom) and ended from outside.
#pragma once
#include <atomic>
#include <chrono>
#include <string>

namespace megalith {

struct Wait {
  const char* what = "";          // the operation: "all_reduce", "receive", …; a literal
  const std::string* channel = nullptr;
  int peer = -1;                  // the rank waited for; -1 when it may be any of several
  std::chrono::steady_clock::time_point since;
};

// Told of waits that last (those that end while spinning are not worth the call). Called by the waiting thread,
// begin and end in pairs; several threads of a process may wait at once.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void wait_begins(const Wait& wait) = 0;
  virtual void wait_ends(const Wait& wait) = 0;
};

}  // namespace megalith

// How a thread waits for another rank: it spins briefly, then yields, then sleeps, so that it takes no time from threads
// that compute. Other code can see a wait (which rank waits for which) and stop it.
#pragma once
#include <atomic>
#include <chrono>
#include <string>

namespace megalith {

struct Wait {
  const char* what = "";          // the operation: "all_reduce", "receive", …; a literal
  const std::string* channel = nullptr;
  int peer = -1;                  // the rank waited for; -1 if it may be one of several
  std::chrono::steady_clock::time_point since;
};

// Called when a wait takes longer; waits that end while spinning are not reported. The waiting thread makes the calls,
// begin and end in pairs. Several threads of a process may wait at the same time.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void wait_begins(const Wait& wait) = 0;
  virtual void wait_ends(const Wait& wait) = 0;
};

}  // namespace megalith

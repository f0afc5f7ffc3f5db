// The steps of a wait: spin, yield, then sleep; watched and stoppable once it sleeps.
#pragma once
#include <atomic>
#include <chrono>

#include "comm/wait.h"

namespace megalith {

// What all waits of a process share; owned by the world.
struct WaitControl {
  std::atomic<bool> stop{false};
  std::atomic<WaitObserver*> observer{nullptr};
  bool may_spin = true;  // false where ranks outnumber cores: the one waited for may need this very core
};

class Backoff {
 public:
  // Made after the first vain look: a wait that is over before it begins costs nothing.
  Backoff(const WaitControl& control, const char* what, const std::string& channel, int peer);
  ~Backoff();
  Backoff(const Backoff&) = delete;
  Backoff& operator=(const Backoff&) = delete;

  // After a vain look. True: look again (it has spun or yielded). False: sleep before looking again. Throws Fault
  // once the world is stopped.
  bool looks_again();
  // Sleeps an eighth of the time waited so far, at most a millisecond: for what cannot wake us.
  void nap() const;
  // Something came, though not all: back to spinning.
  void start_over() { began_ = std::chrono::steady_clock::now(); }

 private:
  const WaitControl& control_;
  Wait wait_;
  std::chrono::steady_clock::time_point began_;
  WaitObserver* told_ = nullptr;
};

}  // namespace megalith

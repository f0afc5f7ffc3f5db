// The phases of a wait: spin, yield, then sleep. Once the wait sleeps, an observer sees it, and it can be stopped.
#pragma once
#include <atomic>
#include <chrono>

#include "comm/wait.h"

namespace megalith {

// State that all waits of a process share. The world owns it.
struct WaitControl {
  std::atomic<bool> stop{false};
  std::atomic<WaitObserver*> observer{nullptr};
  bool may_spin = true;  // false if a host has more ranks than cores: the other rank may need this core
};

class Backoff {
 public:
  // Create it only after the condition was checked once and was false. So a wait that is already over costs nothing.
  Backoff(const WaitControl& control, const char* what, const std::string& channel, int peer);
  ~Backoff();
  Backoff(const Backoff&) = delete;
  Backoff& operator=(const Backoff&) = delete;

  // Call it after each check that found the condition false. Returns true after spinning or yielding: check again.
  // Returns false if the caller should sleep before the next check. Throws Fault once the world is stopped.
  bool looks_again();
  // Sleeps an eighth of the time waited so far, at most 1 ms. For events that cannot wake this thread.
  void nap() const;
  // Part of the data has arrived: spin again.
  void start_over() { began_ = std::chrono::steady_clock::now(); }

 private:
  const WaitControl& control_;
  Wait wait_;
  std::chrono::steady_clock::time_point began_;
  WaitObserver* told_ = nullptr;
};

}  // namespace megalith

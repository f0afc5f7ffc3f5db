// Work of the lanes' threads that the computing threads take over between two products.
//
// The computing threads run in step, one per core. If another thread works at the same time, one computing thread loses
// its core. The other computing threads wait for it, so all cores lose the time of that work. Instead, all computing
// threads do the work in small pieces between two products. Then only the time of the work itself is lost.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace megalith {

// One object for the process, because the cores are shared, too.
class Chores {
 public:
  static Chores& of_process();

  // Does the chores that wait. Each computing thread calls it every few milliseconds.
  void help() {
    last_visit_.store(now(), std::memory_order_relaxed);
    if (waiting_.load(std::memory_order_relaxed) > 0) do_all();
  }

  // While an object lives, its thread and the threads that compute with it promise to call help().
  class Computing {
   public:
    Computing();
    ~Computing();
    Computing(const Computing&) = delete;
    Computing& operator=(const Computing&) = delete;
  };

 private:
  friend class HandedOver;
  enum class State : uint8_t { waits, begun, done };
  struct Chore {
    std::function<void()> work;
    State state = State::waits;
    std::exception_ptr thrown;
  };

  // Nanoseconds of the steady clock.
  static int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
  bool somebody_comes() const;
  std::shared_ptr<Chore> post(std::function<void()> work);
  enum class Backoff : uint8_t { some, none };
  void wait(Chore& chore, Backoff patience);
  bool done(const Chore& chore);
  void do_all();
  void take(std::unique_lock<std::mutex>& lock, Chore& chore);

  std::atomic<int64_t> last_visit_{0};
  std::atomic<int64_t> waiting_{0};  // chores in the queue
  std::atomic<int> computing_{0};
  std::mutex mutex_;                 // guards the queue and all chores' states
  std::deque<std::shared_ptr<Chore>> queue_;
  std::condition_variable changed_;
  int sleepers_ = 0;
};

// Chores of one thread, numbered from 0. If no thread computes, or if the caller computes, add() does a chore at once.
class HandedOver {
 public:
  HandedOver() = default;
  ~HandedOver();  // waits for all chores and ignores what they throw
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;

  void add(std::function<void()> work);
  int64_t size() const { return static_cast<int64_t>(chores_.size()); }
  bool done(int64_t number) const;
  // Returns when the chore is done, and throws what the chore threw. Does the chore here if no computing thread calls
  // help() in time.
  void wait(int64_t number);
  // The same, but does the chore here at once unless another thread has begun it.
  void finish(int64_t number);
  void wait_all();  // waits for all chores, then throws the first exception that one of them threw

 private:
  std::vector<std::shared_ptr<Chores::Chore>> chores_;
};

}  // namespace megalith

// Work of the lanes' threads that those who compute take over between two products.
//
// All cores compute in step. A thread that works beside them takes a core from one of them, and the others wait for
// that one: what it takes, all lose. The same work in small pieces, done by all of them between two products, costs
// its own time only.
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

// One for the process: the cores are shared, too.
class Chores {
 public:
  static Chores& of_process();

  // Called by each thread that computes, every few milliseconds: does what waits.
  void help() {
    last_visit_.store(now(), std::memory_order_relaxed);
    if (waiting_.load(std::memory_order_relaxed) > 0) do_all();
  }

  // While one lives its thread, and those that compute with it, come by.
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

// Chores of one thread, numbered from 0. Where nobody computes, or the caller does, they are done as they are added.
class HandedOver {
 public:
  HandedOver() = default;
  ~HandedOver();  // waits for all, whatever they throw
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;

  void add(std::function<void()> work);
  int64_t size() const { return static_cast<int64_t>(chores_.size()); }
  bool done(int64_t number) const;
  // Returns when it is done, throws what it threw. Does it here when nobody comes by.
  void wait(int64_t number);
  // The same, but does it here unless somebody has begun.
  void finish(int64_t number);
  void wait_all();  // throws the first one's after all have ended

 private:
  std::vector<std::shared_ptr<Chores::Chore>> chores_;
};

}  // namespace megalith

// Runs a stream of tasks on several threads in bounded memory. The caller's thread submits the tasks and receives the
// finished tasks in the same order.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/start_threads.h"

namespace megalith {

template <class Task>
class OrderedPool {
 public:
  // `work(task, worker)` runs on one of `threads` workers (0: one per core); `worker` is in [0, threads()).
  // `done(task)` runs on the caller's thread in the order of submission. At most 2 tasks per thread are in the pool.
  OrderedPool(int64_t threads, std::function<void(Task&, size_t)> work, std::function<void(Task&)> done)
      : work_(std::move(work)), done_(std::move(done)) {
    size_t count =
        threads > 0 ? static_cast<size_t>(threads) : std::max(1u, std::thread::hardware_concurrency());
    workers_ = start_threads(count, [this](size_t i) { run(i); });
  }
  ~OrderedPool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_worker_.notify_all();
    for (auto& worker : workers_) worker.join();
  }
  OrderedPool(const OrderedPool&) = delete;
  OrderedPool& operator=(const OrderedPool&) = delete;

  size_t threads() const { return workers_.size(); }

  // Blocks while the pool is full. Rethrows an exception that `work` threw for an earlier task.
  void submit(Task task) {
    while (jobs_.size() >= 2 * workers_.size()) take_oldest();
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back({std::move(task)});
      waiting_.push_back(&jobs_.back());
    }
    wake_worker_.notify_one();
  }
  void finish() {
    while (!jobs_.empty()) take_oldest();
  }

 private:
  struct Job {
    Task task;
    bool ready = false;
    std::exception_ptr error = nullptr;
  };

  void take_oldest() {
    Job& job = jobs_.front();
    {
      std::unique_lock lock(mutex_);
      wake_caller_.wait(lock, [&] { return job.ready; });
    }
    if (job.error) std::rethrow_exception(job.error);
    done_(job.task);
    jobs_.pop_front();  // only the caller's thread changes the deque; workers hold pointers, which stay valid
  }
  void run(size_t worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_worker_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      Job* job = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        work_(job->task, worker);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      job->error = error;
      job->ready = true;
      wake_caller_.notify_one();
    }
  }

  std::function<void(Task&, size_t)> work_;
  std::function<void(Task&)> done_;
  std::mutex mutex_;
  std::condition_variable wake_worker_, wake_caller_;
  std::deque<Job> jobs_;      // oldest first
  std::deque<Job*> waiting_;  // submitted, but not started
  bool stop_ = false;
  std::vector<std::thread> workers_;  // last member: the threads use all members above
};

}  // namespace megalith

// The engine without io_uring: a few threads that sleep in pread and pwrite.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/start_threads.h"
#include "memory/disk_engine.h"

namespace megalith {
namespace {

constexpr int kMostThreads = 4;  // requests of 1 MiB: four in flight keep an NVMe disk busy

class ThreadEngine : public DiskEngine {
 public:
  explicit ThreadEngine(int depth) {
    threads_ = start_threads(static_cast<size_t>(std::min(depth, kMostThreads)), [this](size_t) { run(); });
  }

  ~ThreadEngine() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void start(const Transfer& transfer, uint64_t tag) override {
    {
      std::lock_guard lock(mutex_);
      todo_.emplace_back(transfer, tag);
    }
    work_.notify_one();
  }

  void submit() override {}

  Done finish() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return !done_.empty(); });
    Done done = done_.front();
    done_.pop_front();
    return done;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [this] { return stop_ || !todo_.empty(); });
      if (todo_.empty()) return;
      auto [t, tag] = todo_.front();
      todo_.pop_front();
      lock.unlock();
      const auto length = static_cast<size_t>(t.length);
      ssize_t moved = t.write ? ::pwrite(t.descriptor, t.data, length, t.offset)
                              : ::pread(t.descriptor, t.data, length, t.offset);
      const int64_t result = moved < 0 ? -errno : moved;
      lock.lock();
      done_.push_back({tag, result});
      ended_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_, ended_;
  std::deque<std::pair<Transfer, uint64_t>> todo_;
  std::deque<Done> done_;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // last, as they use all members above
};

}  // namespace

std::unique_ptr<DiskEngine> make_thread_engine(int depth) {
  return std::make_unique<ThreadEngine>(depth);
}

}  // namespace megalith

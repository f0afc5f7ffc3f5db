#include "memory/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/stopwatch.h"

namespace megalith {
namespace {

void work(double seconds) {
  for (const Stopwatch watch; watch.seconds() < seconds;) {
  }
}

// While this object exists, this thread and the threads that it starts share one core.
class OnOneCore {
 public:
  OnOneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;

 private:
  cpu_set_t before_;
};

// Four threads never sleep, so three wait at any time. The wait that is going on now may not be counted yet.
TEST(Machine, ThreadsThatShareACoreWaitForIt) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "this kernel does not tell how long threads wait";
  const OnOneCore here;
  std::atomic<bool> done = false;
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; i++)
    others.emplace_back([&] {
      while (!done) work(0.01);
    });
  const double before = processor_wait_seconds();
  const Stopwatch watch;
  work(0.3);  // many times the kernel's time slice
  const double waited = processor_wait_seconds() - before, passed = watch.seconds();
  done = true;
  EXPECT_GT(waited, 1.5 * passed);
  EXPECT_LT(waited, 4.1 * passed);
}

}  // namespace
}  // namespace megalith

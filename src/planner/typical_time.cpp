#include "planner/typical_time.h"

#include <omp.h>
#include <time.h>

#include <algorithm>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/stopwatch.h"
#include "memory/machine.h"

namespace megalith {
namespace {

// Long calls are repeated kEnough times, so that a short disturbance does not change the median. They are repeated fewer
// times if kPatience is over earlier.
constexpr size_t kFew = 3, kEnough = 15, kMany = 50;
constexpr double kPatience = 2;       // seconds
constexpr double kWorthSaying = 2.5;  // seconds; longer measurements are announced in the log
constexpr double kLeastShare = 1.0 / 64;  // share of a call's time that remains at least after subtracting waits
constexpr double kBusyShare = 0.1;        // share of time that a thread waits for a core if the machine is busy

double thread_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct CallTime {
  double passed = 0;  // seconds
  double waited = 0;  // seconds in which the calling thread waited for a core
  double ran = 0;     // seconds in which the calling thread had a core
};
CallTime time_of(const std::function<void()>& work) {
  const double waited = thread_wait_seconds(), ran = thread_cpu_seconds();
  const double passed = seconds_of(work);
  return {passed, thread_wait_seconds() - waited, thread_cpu_seconds() - ran};
}

// While this object exists, OpenMP threads that wait for each other do not spin for long: they sleep. GNU's library spins
// only briefly if it manages more threads than there are cores. So this object starts threads that only wait. Then the
// processor time of a thread is the time that it computes, even on a busy machine.
class LittleSpinning {
 public:
  LittleSpinning() {
    holder_ = std::thread([this] {
      const int threads = omp_get_num_procs() + 1;
#pragma omp parallel num_threads(threads)
      {
        if (omp_get_thread_num() == 0) started_.count_down();
        done_.wait();
      }
    });
    started_.wait();
  }
  ~LittleSpinning() {
    done_.count_down();
    holder_.join();
  }
  LittleSpinning(const LittleSpinning&) = delete;
  LittleSpinning& operator=(const LittleSpinning&) = delete;

 private:
  std::latch started_{1}, done_{1};
  std::thread holder_;
};

}  // namespace

double typical_seconds(const char* what, const std::function<void()>& work, double budget,
                       const std::function<void()>& between) {
  const double waits_before = processor_wait_seconds();
  const CallTime first = time_of(work);
  const double threads = omp_get_max_threads();
  const bool busy = processor_wait_seconds() - waits_before > kBusyShare * threads * first.passed;
  // On a busy machine use the processor time of this thread, unless it only waits for other threads that compute.
  const bool count_running = busy && first.ran > 0.5 * (first.passed - first.waited);
  const std::unique_ptr<LittleSpinning> quiet = count_running ? std::make_unique<LittleSpinning>() : nullptr;
  const double expected = std::max(kFew * first.passed, std::min(kPatience, kEnough * first.passed));
  if (expected > kWorthSaying)
    log::info("measuring the speed of {} on this machine (about {:.0f} s, only once)", what, expected);
  std::vector<double> times;
  double spent = 0;
  while (times.size() < kFew || (times.size() < kEnough && spent < kPatience) || (times.size() < kMany && spent < budget)) {
    if (between) between();
    const CallTime call = time_of(work);
    times.push_back(count_running ? call.ran : std::max(kLeastShare * call.passed, call.passed - call.waited));
    spent += call.passed;
  }
  return median(std::move(times));
}

}  // namespace megalith

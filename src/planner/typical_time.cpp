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

// Long calls are repeated until there are enough for a median that a moment's disturbance does not move, or until kPatience
// is over.
constexpr size_t kFew = 3, kEnough = 15, kMany = 50;
constexpr double kPatience = 2;       // seconds
constexpr double kWorthSaying = 2.5;  // seconds
constexpr double kLeastShare = 1.0 / 64;  // of a call's time that is left when waits are taken off
constexpr double kBusyShare = 0.1;        // of its time that a thread waits for a core

double thread_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct CallTime {
  double passed = 0;  // seconds
  double waited = 0;  // of these, that the calling thread stood ready without a core
  double ran = 0;     // that it had one
};
CallTime time_of(const std::function<void()>& work) {
  const double waited = thread_wait_seconds(), ran = thread_cpu_seconds();
  const double passed = seconds_of(work);
  return {passed, thread_wait_seconds() - waited, thread_cpu_seconds() - ran};
}

// While this lives, OpenMP's threads sleep soon where they wait for each other, instead of spinning: GNU's library spins little
// where it manages more threads than there are cores. The ones that wait here make them more. Then a thread's processor time is
// what it computes, whatever else has the cores.
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
  // On a busy machine the processor time of this thread counts, if it computes itself and does not wait for others that do.
  const bool count_running = busy && first.ran > 0.5 * (first.passed - first.waited);
  const std::unique_ptr<LittleSpinning> quiet = count_running ? std::make_unique<LittleSpinning>() : nullptr;
  const double expected = std::max(kFew * first.passed, std::min(kPatience, kEnough * first.passed));
  if (expected > kWorthSaying) log::info("measuring {} of this model on this machine, about {:.0f} s, once", what, expected);
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

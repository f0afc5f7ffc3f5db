// Executes schedules with one thread per lane. The threads live from step to step.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace megalith {

class Lanes {
 public:
  Lanes();
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Calls `work(op)` for every op as soon as its lane is free and all ops in its `after` are done. Returns when all ops are
  // done. The compute lane is the caller's thread, because LibTorch's OpenMP pool belongs to the thread that computes. The
  // threads of the other lanes start with the first schedule that uses them. If `work` throws, running ops finish and no
  // further op starts. Then run() throws the first exception. Throws Bug if ops wait in a cycle. One run at a time.
  std::vector<Span> run(const Schedule& schedule, const std::function<void(OpId)>& work);

 private:
  struct LaneState {
    std::vector<OpId> queue;      // of the current run
    OpId waits_for = kNoOp;       // the lane sleeps until this op is done
    bool has_work = false;        // true until the lane has finished its ops of the current run
    std::condition_variable wake;
    std::thread thread;           // not used by the compute lane
  };

  // Call all of these with mutex_ held. run_queue releases it while an op works.
  void start_thread(size_t lane);
  void serve(size_t lane);                                   // runs on the thread of a lane
  void run_queue(size_t lane, std::unique_lock<std::mutex>& lock);
  bool wait_for(OpId op, LaneState& lane, std::unique_lock<std::mutex>& lock);
  void finish(OpId op);
  void fail(std::exception_ptr reason);
  void rouse(LaneState& lane);
  void check_for_cycle();
  double now() const;                                        // seconds since the run began

  std::mutex mutex_;  // guards everything below
  std::vector<std::unique_ptr<LaneState>> lanes_;
  std::condition_variable idle_;                             // a lane has left the current run
  const Schedule* schedule_ = nullptr;  // of the current run; like work_, it does not change during a run
  const std::function<void(OpId)>* work_ = nullptr;
  std::chrono::steady_clock::time_point began_;
  std::vector<bool> done_;
  std::vector<Span> spans_;
  int awake_ = 0;                                            // number of lanes with work that do not sleep
  std::exception_ptr failure_;
  bool closing_ = false;
};

}  // namespace megalith

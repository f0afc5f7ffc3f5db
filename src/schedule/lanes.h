// Executes schedules: one thread a lane, kept from step to step.
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

  // Does `work(op)` for every op, each as soon as its lane is free and all of its `after` are done, and
  // returns when all are done. The compute lane is the caller's thread (LibTorch's OpenMP pool belongs to the
  // thread that computes); the other lanes' threads start with the first schedule that uses them. What work
  // throws ends the run: running ops finish, no further one starts, and the first exception is thrown again
  // here. Ops that wait in a cycle throw Bug. One run at a time.
  std::vector<Span> run(const Schedule& schedule, const std::function<void(OpId)>& work);

 private:
  struct LaneState {
    std::vector<OpId> queue;      // of the current run
    OpId waits_for = kNoOp;       // asleep until this op is done
    bool has_work = false;        // the current run has ops for it and it has not finished them
    std::condition_variable wake;
    std::thread thread;           // none for the compute lane
  };

  // All of these with mutex_ held; run_queue lets go of it while an op works.
  void start_thread(size_t lane);
  void serve(size_t lane);                                   // a lane's thread
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
  const Schedule* schedule_ = nullptr;  // of the current run; constant during it, as is work_
  const std::function<void(OpId)>* work_ = nullptr;
  std::chrono::steady_clock::time_point began_;
  std::vector<bool> done_;
  std::vector<Span> spans_;
  int awake_ = 0;                                            // lanes with work that are not asleep
  std::exception_ptr failure_;
  bool closing_ = false;
};

}  // namespace megalith

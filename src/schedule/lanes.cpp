#include "schedule/lanes.h"

#include <pthread.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "base/start_threads.h"

namespace megalith {
namespace {

constexpr auto kCaller = static_cast<size_t>(Lane::compute);

}  // namespace

Lanes::Lanes() {
  for (int lane = 0; lane < kLanes; lane++) lanes_.push_back(std::make_unique<LaneState>());
}

Lanes::~Lanes() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    for (auto& lane : lanes_) lane->wake.notify_one();
  }
  for (auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

std::vector<Span> Lanes::run(const Schedule& schedule, const std::function<void(OpId)>& work) {
  std::unique_lock lock(mutex_);
  MEGALITH_ASSERT(schedule_ == nullptr, "a schedule is already running");
  for (auto& lane : lanes_) lane->queue.clear();
  const size_t count = schedule.ops.size();
  for (size_t op = 0; op < count; op++) {
    for (OpId after : schedule.ops[op].after) {
      MEGALITH_ASSERT(after >= 0 && static_cast<size_t>(after) < count, "op {} waits for op {}", op, after);
    }
    lanes_[static_cast<size_t>(schedule.ops[op].lane)]->queue.push_back(static_cast<OpId>(op));
  }
  for (size_t lane = 0; lane < kLanes; lane++) {
    if (lane != kCaller && !lanes_[lane]->queue.empty() && !lanes_[lane]->thread.joinable())
      start_thread(lane);
  }
  done_.assign(count, false);
  spans_.assign(count, {});
  failure_ = nullptr;
  awake_ = 0;
  schedule_ = &schedule;
  work_ = &work;
  began_ = std::chrono::steady_clock::now();
  for (auto& lane : lanes_) {
    if (lane->queue.empty()) continue;
    lane->has_work = true;
    awake_++;
    lane->wake.notify_one();
  }
  if (lanes_[kCaller]->has_work) run_queue(kCaller, lock);
  idle_.wait(lock, [&] {
    for (auto& lane : lanes_) {
      if (lane->has_work) return false;
    }
    return true;
  });
  schedule_ = nullptr;
  work_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return std::move(spans_);
}

void Lanes::start_thread(size_t lane) {
  lanes_[lane]->thread = megalith::start_thread([this, lane] { serve(lane); });
  const std::string title =
      fmt::format("lane {}", name(static_cast<Lane>(lane)));  // for debuggers and profilers
  pthread_setname_np(lanes_[lane]->thread.native_handle(), title.c_str());
}

void Lanes::serve(size_t lane) {
  std::unique_lock lock(mutex_);
  LaneState& state = *lanes_[lane];
  while (true) {
    state.wake.wait(lock, [&] { return state.has_work || closing_; });
    if (closing_) return;
    run_queue(lane, lock);
  }
}

void Lanes::run_queue(size_t lane, std::unique_lock<std::mutex>& lock) {
  LaneState& state = *lanes_[lane];
  auto ready = [&](OpId op) {
    for (OpId after : schedule_->ops[op].after) {
      if (!wait_for(after, state, lock)) return false;
    }
    return failure_ == nullptr;
  };
  for (OpId op : state.queue) {
    if (!ready(op)) break;
    std::exception_ptr thrown;
    spans_[op].start = now();
    lock.unlock();
    try {
      (*work_)(op);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown) {
      fail(std::move(thrown));
      break;
    }
    spans_[op].end = now();
    finish(op);
  }
  state.has_work = false;
  awake_--;
  check_for_cycle();
  idle_.notify_one();
}

// Sleeps until the op is done. Returns false if the run has failed.
bool Lanes::wait_for(OpId op, LaneState& lane, std::unique_lock<std::mutex>& lock) {
  if (failure_ || done_[op]) return failure_ == nullptr;
  lane.waits_for = op;
  awake_--;
  check_for_cycle();
  lane.wake.wait(lock, [&] { return lane.waits_for == kNoOp; });
  return failure_ == nullptr;
}

void Lanes::finish(OpId op) {
  done_[op] = true;
  for (auto& lane : lanes_) {
    if (lane->waits_for == op) rouse(*lane);
  }
}

void Lanes::fail(std::exception_ptr reason) {
  if (!failure_) failure_ = std::move(reason);
  for (auto& lane : lanes_) {
    if (lane->waits_for != kNoOp) rouse(*lane);
  }
}

// Counts the lane as awake at once. Its thread may run later, and until then check_for_cycle would count the lane as
// asleep.
void Lanes::rouse(LaneState& lane) {
  lane.waits_for = kNoOp;
  awake_++;
  lane.wake.notify_one();
}

// If all lanes with work sleep, no lane can wake them: their ops wait in a cycle.
void Lanes::check_for_cycle() {
  if (awake_ > 0) return;
  for (auto& lane : lanes_) {
    if (lane->waits_for == kNoOp) continue;
    return fail(std::make_exception_ptr(
        Bug(fmt::format("ops wait in a cycle, one of them for {}", describe(*schedule_, lane->waits_for)))));
  }
}

double Lanes::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

}  // namespace megalith

#include "base/chores.h"

#include <algorithm>

namespace megalith {
namespace {

// If no computing thread has called help() for this time, the computing threads are in a long product or wait for another
// rank. Then the lane's thread does its chores itself.
constexpr std::chrono::milliseconds kPatience{15};

thread_local int computes_here = 0;

}  // namespace

Chores& Chores::of_process() {
  static Chores chores;
  return chores;
}

Chores::Computing::Computing() {
  Chores& chores = of_process();
  computes_here++;
  chores.last_visit_.store(now(), std::memory_order_relaxed);
  chores.computing_.fetch_add(1);
}

Chores::Computing::~Computing() {
  Chores& chores = of_process();
  computes_here--;
  chores.computing_.fetch_sub(1);
  std::lock_guard lock(chores.mutex_);
  if (chores.sleepers_ > 0) chores.changed_.notify_all();
}

bool Chores::somebody_comes() const {
  constexpr int64_t patience = std::chrono::nanoseconds(kPatience).count();
  return computing_.load() > 0 && computes_here == 0 && now() - last_visit_.load(std::memory_order_relaxed) < patience;
}

std::shared_ptr<Chores::Chore> Chores::post(std::function<void()> work) {
  auto chore = std::make_shared<Chore>();
  chore->work = std::move(work);
  std::unique_lock lock(mutex_);
  if (somebody_comes()) {
    queue_.push_back(chore);
    waiting_.fetch_add(1);
  } else {
    take(lock, *chore);
  }
  return chore;
}

// Does the chore without holding the lock.
void Chores::take(std::unique_lock<std::mutex>& lock, Chore& chore) {
  chore.state = State::begun;
  lock.unlock();
  std::exception_ptr thrown;
  try {
    chore.work();
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  chore.thrown = thrown;
  chore.state = State::done;
  if (sleepers_ > 0) changed_.notify_all();
}

void Chores::do_all() {
  std::unique_lock lock(mutex_);
  while (!queue_.empty()) {
    const std::shared_ptr<Chore> chore = std::move(queue_.front());
    queue_.pop_front();
    waiting_.fetch_sub(1);
    take(lock, *chore);
  }
}

void Chores::wait(Chore& chore, Backoff patience) {
  std::unique_lock lock(mutex_);
  while (chore.state != State::done) {
    if (chore.state == State::waits && (patience == Backoff::none || !somebody_comes())) {
      std::erase_if(queue_, [&](const auto& other) { return other.get() == &chore; });
      waiting_.fetch_sub(1);
      take(lock, chore);
      continue;
    }
    sleepers_++;
    changed_.wait_for(lock, kPatience);
    sleepers_--;
  }
  if (chore.thrown) std::rethrow_exception(chore.thrown);
}

bool Chores::done(const Chore& chore) {
  std::lock_guard lock(mutex_);
  return chore.state == State::done;
}

HandedOver::~HandedOver() {
  try {
    wait_all();
  } catch (...) {  // callers that want the exception call wait_all() before
  }
}

void HandedOver::add(std::function<void()> work) { chores_.push_back(Chores::of_process().post(std::move(work))); }

bool HandedOver::done(int64_t number) const { return Chores::of_process().done(*chores_[static_cast<size_t>(number)]); }

void HandedOver::wait(int64_t number) {
  Chores::of_process().wait(*chores_[static_cast<size_t>(number)], Chores::Backoff::some);
}

void HandedOver::finish(int64_t number) {
  Chores::of_process().wait(*chores_[static_cast<size_t>(number)], Chores::Backoff::none);
}

void HandedOver::wait_all() {
  std::exception_ptr first;
  for (int64_t i = 0; i < size(); i++) {
    try {
      wait(i);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace megalith

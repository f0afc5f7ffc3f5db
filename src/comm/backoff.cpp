#include "comm/backoff.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/error.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

constexpr auto kSpin = 20us;    // about the cost of a wake-up
constexpr auto kYield = 200us;  // after this time the thread sleeps

void relax() {
#if defined(__x86_64__)
  for (int i = 0; i < 4; i++) __builtin_ia32_pause();
#endif
}

}  // namespace

Backoff::Backoff(const WaitControl& control, const char* what, const std::string& channel, int peer)
    : control_(control), wait_{what, &channel, peer, std::chrono::steady_clock::now()}, began_(wait_.since) {}

Backoff::~Backoff() {
  if (told_ != nullptr) told_->wait_ends(wait_);
}

bool Backoff::looks_again() {
  const auto waited = std::chrono::steady_clock::now() - began_;
  if (control_.may_spin && waited < kSpin) {
    relax();
    return true;
  }
  if (waited < kYield) {
    sched_yield();
    return true;
  }
  if (control_.stop.load(std::memory_order_relaxed)) {
    const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - wait_.since;
    throw Fault(fmt::format("stopped after waiting {:.1f} s for {} ({} on channel {})", lasted.count(),
                            wait_.peer < 0 ? "other ranks" : fmt::format("rank {}", wait_.peer), wait_.what,
                            *wait_.channel));
  }
  if (told_ == nullptr) {
    told_ = control_.observer.load(std::memory_order_acquire);
    if (told_ != nullptr) told_->wait_begins(wait_);
  }
  return false;
}

void Backoff::nap() const {
  const auto waited = std::chrono::steady_clock::now() - began_;
  std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 8, 1ms));
}

}  // namespace megalith

#include "train/status_observer.h"

namespace megalith {
namespace {

thread_local std::optional<Lane> lane_of_thread;  // lane of the op that this thread runs

}  // namespace

std::optional<Lane> StatusObserver::lane() const {
  if (lane_of_thread) return lane_of_thread;
  return std::this_thread::get_id() == own_ ? std::optional(Lane::compute) : std::nullopt;
}

void StatusObserver::op_begins(const Op& op) {
  lane_of_thread = op.lane;
  page_.enter(op, /*predicted_s=*/0);  // the watchdog uses the prediction of the step
}

void StatusObserver::op_ends(const Op& op) {
  page_.leave(op.lane);
  lane_of_thread.reset();
}

void StatusObserver::wait_begins(const Wait& wait) {
  const auto waits = lane();
  if (!waits) return;
  const std::string exchange = wait.channel ? fmt::format("{} over {}", wait.what, *wait.channel) : wait.what;
  page_.waiting(*waits, exchange, wait.peer < 0 ? std::span<const int>() : std::span(&wait.peer, 1));
}

void StatusObserver::wait_ends(const Wait&) {
  if (const auto waits = lane()) page_.arrived(*waits);
}

}  // namespace megalith

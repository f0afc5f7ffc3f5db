#include "engine/op_watch.h"

namespace megalith {
namespace {

thread_local std::optional<Lane> lane_of_thread;  // of the op that this thread is in

}  // namespace

std::optional<Lane> OpWatch::lane() const {
  if (lane_of_thread) return lane_of_thread;
  return std::this_thread::get_id() == own_ ? std::optional(Lane::compute) : std::nullopt;
}

void OpWatch::enter(const Op& op) {
  lane_of_thread = op.lane;
  page_.enter(op, /*predicted_s=*/0);  // the step's prediction is what the watchdog goes by
}

void OpWatch::leave(const Op& op) {
  page_.leave(op.lane);
  lane_of_thread.reset();
}

void OpWatch::wait_begins(const Wait& wait) {
  const auto waits = lane();
  if (!waits) return;
  const std::string exchange = wait.channel ? fmt::format("{} over {}", wait.what, *wait.channel) : wait.what;
  page_.waiting(*waits, exchange, wait.peer < 0 ? std::span<const int>() : std::span(&wait.peer, 1));
}

void OpWatch::wait_ends(const Wait&) {
  if (const auto waits = lane()) page_.arrived(*waits);
}

}  // namespace megalith

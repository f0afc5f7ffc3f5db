// The part of ModelState that knows which updates spilled blocks have yet to make, and which experts stay on the shelf.
#include <algorithm>
#include <ranges>

#include "base/error.h"
#include "engine/model_state.h"

namespace megalith {
namespace {

// After so many updates an expert that nobody chooses makes them all the same: what waits stays short, and so does the
// time that it takes to make it. Experts differ by up to half of it, so that not all of them come in the same step.
constexpr int64_t kMostWaiting = 64;

}  // namespace

// Whether a renew brings it in: what the last use of the block took is likely to be taken again, and a gradient that waits
// has to make room for the next.
bool ModelState::is_due(const Part& part) const {
  const int64_t most = kMostWaiting - part.stored % (kMostWaiting / 2);
  return part.chosen || part.gradient_waits || waiting(part) >= most;
}

bool ModelState::is_pending(const State& state) const {
  return state.held && std::ranges::any_of(state.parts, [&](const Part& part) { return waiting(part) > 0; });
}

void ModelState::bring(State& state, std::span<Part* const> parts, Lane lane) {
  std::vector<Part*> behind, current;
  for (Part* part : parts) (waiting(*part) > 0 ? behind : current).push_back(part);
  renew_streaming(state, behind, lane);
  for (Part* part : behind) mark_made(state, *part);
  if (state.placement == Placement::on_disk) read(state, current, lane);
  for (Part* part : parts) part->present = true;
}

void ModelState::mark_made(State& state, Part& part) {
  part.made = log_.end();
  if (std::exchange(part.gradient_waits, false) && state.gradient_stays)
    zero(state.gradients.narrow(0, part.flat.begin, part.flat.size()));
}

void ModelState::need(int64_t layer, std::span<const int64_t> begin) {
  State& state = state_of(static_cast<BlockId>(layer) + 1);
  std::vector<Part*> coming;
  for (Part& part : state.parts) {
    const auto expert = static_cast<size_t>(part.expert);
    if (part.expert < 0 || begin[expert + 1] == begin[expert]) continue;
    if (!part.present) coming.push_back(&part);
    if (std::exchange(part.chosen, true) || !part.sum.defined()) continue;
    if (state.placement == Placement::on_disk) zero(part.sum);  // another micro-batch's has been cleared already
  }
  bring(state, coming, Lane::compute);
  experts_called_ += std::ssize(coming);
}

DiskUse ModelState::disk_use() const {
  return store_ ? DiskUse{store_->bytes_read(), store_->bytes_written(), experts_called_} : DiskUse{};
}

void ModelState::leave_pending(const Update& update) {
  log_.add(update);
  int64_t oldest = log_.end();
  for (State& state : blocks_) {
    const bool spilled = state.held && state.placement != Placement::in_memory;
    for (Part& part : state.parts) {
      if (!spilled) part.made = log_.end();
      else part.gradient_waits = part.chosen;
      oldest = std::min(oldest, part.made);
    }
  }
  log_.forget_before(oldest);
}

void ModelState::forget_gradients() {
  for (State& state : blocks_)
    if (state.placement == Placement::optimizer_on_disk && state.gradient_stays) zero(state.gradients);
}

}  // namespace megalith

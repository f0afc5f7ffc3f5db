#include "data/admitted_order.h"

#include <xxhash.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"

namespace megalith {

AdmittedOrder::AdmittedOrder(std::vector<int64_t> admitted_at, std::function<int64_t(int64_t)> draws_before,
                             uint64_t seed, uint64_t set)
    : order_(admitted_at.size()),
      draws_before_(std::move(draws_before)),
      seed_(seed),
      set_(set),
      fingerprint_(fmt::format("{:016x}", XXH3_64bits(admitted_at.data(), admitted_at.size() * sizeof admitted_at[0]))) {
  std::iota(order_.begin(), order_.end(), int64_t{0});
  std::ranges::stable_sort(order_, {}, [&](int64_t sample) { return admitted_at[static_cast<size_t>(sample)]; });
  for (size_t i = 0; i < order_.size(); i++) {
    const int64_t step = admitted_at[static_cast<size_t>(order_[i])];
    if (levels_.empty() || levels_.back().step != step) levels_.push_back({step, 0});
    levels_.back().count = static_cast<int64_t>(i) + 1;
  }
  MEGALITH_ASSERT(!levels_.empty() && levels_.front().step <= 0, "nothing is admitted at the first step");
  // The pool grows to this size. Allocate its pages now: the plan counts the memory that the process has when it is made.
  pool_.resize(order_.size());
  pool_.clear();
}

int64_t AdmittedOrder::admitted(int64_t step) const {
  auto after = std::ranges::upper_bound(levels_, step, {}, &Level::step);
  return after == levels_.begin() ? 0 : std::prev(after)->count;
}

// Returns the beginning of the epoch in which a step begins. It depends only on the number of draws, not on which
// samples were drawn.
AdmittedOrder::Place AdmittedOrder::epoch_begin(int64_t step) const {
  if (step < counted_to_) counted_ = {}, counted_to_ = 0;
  for (; counted_to_ < step; counted_to_++) {
    const int64_t s = counted_to_, all = admitted(s);
    const int64_t epochs = (draws_before_(s + 1) - counted_.draw - 1) / all;  // epochs that begin in this step
    if (epochs > 0) counted_ = {s, counted_.draw + epochs * all, counted_.epoch + epochs};
  }
  return counted_;
}

double AdmittedOrder::passes(int64_t steps) const {
  if (steps == 0) return 0;
  std::lock_guard lock(mutex_);
  const Place begin = epoch_begin(steps);
  return static_cast<double>(begin.epoch) +
         static_cast<double>(draws_before_(steps) - begin.draw) / static_cast<double>(admitted(steps - 1));
}

void AdmittedOrder::seek(int64_t step) const {
  MEGALITH_ASSERT(step >= 0, "step {}", step);
  if (now_.step == step) return;
  now_ = epoch_begin(step);
  pool_.clear();
  taken_ = 0;
  while (now_.step < step) advance();
}

std::vector<EpochSample> AdmittedOrder::advance() const {
  pool_.insert(pool_.end(), order_.begin() + std::ssize(pool_), order_.begin() + admitted(now_.step));
  std::vector<EpochSample> drawn;
  for (const int64_t end = draws_before_(now_.step + 1); now_.draw < end; now_.draw++) drawn.push_back(take());
  now_.step++;
  return drawn;
}

// One step of the Fisher-Yates shuffle. Every epoch starts from the same arrangement, so that it does not depend on
// earlier epochs.
EpochSample AdmittedOrder::take() const {
  if (taken_ == pool_.size()) {
    std::copy_n(order_.begin(), pool_.size(), pool_.begin());
    taken_ = 0;
    now_.epoch++;
  }
  const Philox random(seed_, RandomUse::curriculum, set_);
  const uint64_t chosen = random.below(static_cast<uint64_t>(now_.draw), pool_.size() - taken_);
  std::swap(pool_[taken_], pool_[taken_ + chosen]);
  return {now_.epoch, pool_[taken_++]};
}

std::vector<EpochSample> AdmittedOrder::draw(int64_t step) const {
  std::lock_guard lock(mutex_);
  seek(step);
  return advance();
}

}  // namespace megalith

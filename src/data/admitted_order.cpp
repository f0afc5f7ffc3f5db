#include "data/admitted_order.h"

#include <xxhash.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
#include "data/permutation.h"

namespace megalith {

AdmittedOrder::AdmittedOrder(std::vector<int64_t> admitted_at, std::function<int64_t(int64_t)> draws_before,
                             uint64_t seed, uint64_t set)
    : order_(admitted_at.size()),
      draws_before_(std::move(draws_before)),
      seed_(seed),
      set_(set),
      admits_(fmt::format("{:016x}", XXH3_64bits(admitted_at.data(), admitted_at.size() * sizeof admitted_at[0]))) {
  std::iota(order_.begin(), order_.end(), int64_t{0});
  std::ranges::stable_sort(order_, {}, [&](int64_t sample) { return admitted_at[static_cast<size_t>(sample)]; });
  for (size_t i = 0; i < order_.size(); i++) {
    const int64_t step = admitted_at[static_cast<size_t>(order_[i])];
    if (levels_.empty() || levels_.back().step != step) levels_.push_back({step, 0});
    levels_.back().count = static_cast<int64_t>(i) + 1;
  }
  MEGALITH_ASSERT(!levels_.empty() && levels_.front().step <= 0, "nothing is admitted at the first step");
}

int64_t AdmittedOrder::admitted(int64_t step) const {
  auto after = std::ranges::upper_bound(levels_, step, {}, &Level::step);
  return after == levels_.begin() ? 0 : std::prev(after)->count;
}

EpochSample AdmittedOrder::take(State& state, int64_t number) const {
  auto left_in = [](const Cluster& c) { return c.size - c.taken; };
  int64_t left = 0, total = 0;
  for (const Cluster& c : state.clusters) {
    left += left_in(c);
    total += c.size;
  }
  if (left == 0) {  // all have the same right again, so they become one
    state.epoch++;
    state.clusters = {{0, total, 0}};
    left = total;
  }
  auto cluster = state.clusters.begin();
  if (state.clusters.size() > 1) {
    Philox random(seed_, RandomUse::curriculum, set_, static_cast<uint64_t>(number));
    auto chosen = static_cast<int64_t>(random.below(0, static_cast<uint64_t>(left)));
    for (; chosen >= left_in(*cluster); cluster++) chosen -= left_in(*cluster);
  }
  auto bits = Philox(seed_, RandomUse::curriculum_order, set_ << 32 ^ static_cast<uint64_t>(state.epoch),
                     static_cast<uint64_t>(cluster->begin))
                  .block(0);
  Permutation shuffle(static_cast<uint64_t>(cluster->size), static_cast<uint64_t>(bits[0]) << 32 | bits[1]);
  const uint64_t place = shuffle(static_cast<uint64_t>(cluster->taken++));
  return {state.epoch, order_[static_cast<size_t>(cluster->begin) + place]};
}

std::vector<EpochSample> AdmittedOrder::advance(State& state) const {
  int64_t known = 0;
  for (const Cluster& c : state.clusters) known += c.size;
  const int64_t now = admitted(state.step);
  if (now > known) state.clusters.push_back({known, now - known, 0});
  std::vector<EpochSample> drawn;
  for (int64_t n = draws_before_(state.step); n < draws_before_(state.step + 1); n++) drawn.push_back(take(state, n));
  state.step++;
  return drawn;
}

AdmittedOrder::State& AdmittedOrder::at(int64_t step) const {
  MEGALITH_ASSERT(step >= 0, "step {}", step);
  if (now_.step > step) now_ = start_.step <= step ? start_ : State{};
  while (now_.step < step) advance(now_);
  return now_;
}

std::vector<EpochSample> AdmittedOrder::draw(int64_t step) const {
  std::lock_guard lock(mutex_);
  return advance(at(step));
}

nlohmann::json AdmittedOrder::state(int64_t step) const {
  std::lock_guard lock(mutex_);
  const State& state = at(step);
  nlohmann::json clusters = nlohmann::json::array();
  for (const Cluster& c : state.clusters) clusters.push_back({c.begin, c.size, c.taken});
  return {{"step", state.step}, {"epoch", state.epoch}, {"clusters", clusters}, {"admits", admits_}};
}

void AdmittedOrder::restore(const nlohmann::json& json) {
  if (json.value("admits", admits_) != admits_)
    throw UserError({"", "curriculum", "the difficulties that the run began with", "others",
                     "a metric's file or a checkpoint that a metric is computed with has changed since: put back what was "
                     "there, or begin a new run"});
  State state{json.at("step").get<int64_t>(), json.at("epoch").get<int64_t>(), {}};
  int64_t known = 0;
  for (const auto& c : json.at("clusters")) {
    Cluster cluster{c.at(0).get<int64_t>(), c.at(1).get<int64_t>(), c.at(2).get<int64_t>()};
    const bool fits = cluster.begin == known && cluster.size > 0 && cluster.taken >= 0 && cluster.taken <= cluster.size;
    if (fits) known += cluster.size;
    if (!fits || known > samples())
      throw UserError({"", "curriculum", fmt::format("the order of {} samples in the checkpoint", samples()),
                       "that of other data", "the metric or the data have changed since it was saved"});
    state.clusters.push_back(cluster);
  }
  std::lock_guard lock(mutex_);
  start_ = now_ = std::move(state);
}

}  // namespace megalith

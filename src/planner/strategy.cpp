#include "planner/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/predict/memory.h"
#include "schedule/check/happens_before.h"
#include "schedule/passes/input_offload.h"
#include "schedule/passes/recompute_choice.h"
#include "schedule/passes/save.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

constexpr int64_t kWorthSpilling = int64_t{1} << 20;  // bytes; smaller blocks stay in memory
// With more blocks, or more blocks times micro-batches, each schedule takes long to make and check, so we try fewer
// strategies. The window is chosen again after the first steps.
constexpr int64_t kManyBlocks = 512, kManyOps = 2048;

bool is_large(const std::vector<BlockFacts>& blocks, int32_t micros) {
  return std::ssize(blocks) > kManyBlocks || std::ssize(blocks) * micros > kManyOps;
}

// Ends a chain of recomputed layers where a pipeline stage ends.
std::vector<Keep> within_stages(std::vector<Keep> keep, const StageMap& stages) {
  for (size_t b = 1; b < keep.size() && !stages.of.empty(); b++)
    if (keep[b] == Keep::none && stages.of[b] != stages.of[b - 1]) keep[b] = Keep::input;
  return keep;
}

// Returns the blocks in the order in which they move to disk. The last layers are first: a step begins with the first
// layers, so the disk has time to load the last ones. The head and the embedding are last, because a step uses them more
// than twice.
std::vector<size_t> leaving_order(const std::vector<BlockFacts>& blocks) {
  std::vector<size_t> order;
  for (size_t b = blocks.size() - 2; b >= 1; b--) order.push_back(b);
  order.push_back(blocks.size() - 1);
  order.push_back(0);
  std::erase_if(order, [&](size_t b) { return 4 * blocks[b].parameters < kWorthSpilling; });
  return order;
}

// The steps from everything in memory (0) to everything on disk. Moments move to disk first.
class PlacementPath {
 public:
  explicit PlacementPath(const std::vector<BlockFacts>& blocks) : count_(blocks.size()), order_(leaving_order(blocks)) {
    streams_ = !blocks.empty() && blocks[1].optimizer_streams && blocks[1].optimizer_bytes > 0;
  }
  size_t length() const { return order_.size() * (streams_ ? 2 : 1); }
  std::vector<Placement> at(size_t steps) const {
    if (steps == 0) return {};
    std::vector<Placement> placement(count_, Placement::in_memory);
    size_t away = steps;
    if (streams_) {
      for (size_t i = 0; i < std::min(steps, order_.size()); i++) placement[order_[i]] = Placement::optimizer_on_disk;
      away = steps - std::min(steps, order_.size());
    }
    for (size_t i = 0; i < away; i++) placement[order_[i]] = Placement::on_disk;
    return placement;
  }

 private:
  size_t count_;
  std::vector<size_t> order_;
  bool streams_ = true;
};

// Returns the smallest number in [0, most] for which `fits` is true, or nothing. If a number fits, all larger ones must fit.
std::optional<size_t> smallest(size_t most, const std::function<bool(size_t)>& fits) {
  if (!fits(most)) return std::nullopt;
  size_t low = 0, high = most;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (fits(middle)) high = middle;
    else low = middle + 1;
  }
  return high;
}

std::vector<Keep> keep_as_told(const std::vector<BlockFacts>& blocks, const MemorySettings& memory) {
  switch (memory.recompute) {
    case Recompute::selective: return recompute_feed_forward(blocks);
    case Recompute::full: return recompute_all(blocks);
    case Recompute::every: return recompute_every(blocks, memory.recompute_every);
    default: return {};
  }
}

// Returns which inputs to offload, for the first `layers` layers that keep one: their inputs wait longest. Empty if no layer
// offloads its input.
std::vector<bool> parking(const std::vector<Keep>& keep, size_t layers) {
  std::vector<bool> offloads(keep.size());
  for (size_t b = 0; b < keep.size() && layers > 0; b++)
    if (keep[b] == Keep::input) {
      offloads[b] = true;
      layers--;
    }
  return std::ranges::find(offloads, true) == offloads.end() ? std::vector<bool>() : offloads;
}

// Returns the strategy with as little recomputation as fits the tier that computes, or nothing. Does not change placement.
std::optional<Strategy> with_least_recompute(const std::vector<BlockFacts>& blocks, int32_t micros, Strategy strategy,
                                             int64_t room) {
  const Tier tier = strategy.layout.device ? Tier::device : Tier::host;
  // Find by trial which part of the room layers may use for what they keep, in 64ths.
  const bool large = is_large(blocks, micros);
  for (int64_t left = 64; left > 0; left = large ? left / 2 : left - 1) {
    strategy.keep = choose_keep(blocks, micros, strategy.order, room * left / 64);
    if (!strategy.keep.empty() && most_memory(blocks, micros, strategy, tier) <= room) return strategy;
  }
  return std::nullopt;
}

}  // namespace

Schedule training_schedule(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy) {
  const RankLayout& layout = strategy.layout;
  const std::vector<Keep> keep = within_stages(strategy.keep, layout.stages);
  // Blocks that are loaded for each use compute all micro-batches at a time, for any pipeline order.
  const bool pipelined = !layout.stages.of.empty() && strategy.order == ComputeOrder::by_micro;
  Schedule step = pipelined ? pipeline_step(blocks, micros, layout.sizes().order, keep, layout)
                            : training_step(blocks, micros, strategy.order, keep, layout);
  return with_residency(with_input_offload(std::move(step), strategy.offloads), strategy.placement, strategy.window,
                        strategy.ahead);
}

Schedule evaluation_schedule(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy) {
  return with_residency(evaluation_step(blocks, micros, strategy.order, strategy.layout), strategy.placement,
                        strategy.window, strategy.ahead);
}

Schedule final_save_schedule(const std::vector<BlockFacts>& blocks, const Strategy& strategy) {
  return strategy.spills() ? with_save(apply_pending_only(blocks, strategy.placement, strategy.layout))
                           : save_only(blocks, strategy.layout);
}

int64_t most_memory(const std::vector<BlockFacts>& blocks, int32_t micros, const Strategy& strategy, Tier tier) {
  const auto bound = [&](const Schedule& schedule) { return memory_bound(schedule, HappensBefore(schedule), tier).bytes; };
  const int64_t step = bound(with_save(training_schedule(blocks, micros, strategy)));
  // Validation and the last save need less memory, unless training drops tokens.
  if (std::ranges::none_of(blocks, &BlockFacts::drops_tokens)) return step;
  return std::max(step, bound(evaluation_schedule(blocks, micros, strategy)));
}

std::vector<int32_t> windows_to_try(const MemorySettings& memory, bool device, size_t blocks) {
  if (memory.window > 0) return {static_cast<int32_t>(memory.window)};
  std::vector<int32_t> windows;
  if (!device)
    for (int32_t window = 1; window <= kLargestWindow; window++) windows.push_back(window);
  // The largest window keeps every block in memory from its first use to its last.
  for (int32_t window = 1; device && window < 4 * static_cast<int32_t>(blocks); window *= 2) windows.push_back(window);
  return windows;
}

namespace {

// Returns strategies that fit a device and its host. They use as much host memory as there is, and device memory by windows
// of several sizes. Simulation finds the fastest.
std::vector<Strategy> strategies_on_device(const std::vector<BlockFacts>& blocks, int32_t micros,
                                           const StrategyLimits& limits) {
  const MemorySettings& memory = limits.memory;
  const bool open = memory.recompute == Recompute::automatic;
  const size_t layers = blocks.size() - 2;
  const PlacementPath path(blocks);
  std::vector<Strategy> found;
  const auto fits_device = [&](const Strategy& s) { return most_memory(blocks, micros, s, Tier::device) <= limits.device; };
  const auto fits_host = [&](const Strategy& s) { return most_memory(blocks, micros, s) <= limits.room; };
  // Adds a strategy with as little on disk as host memory allows.
  const auto add = [&](Strategy strategy) {
    const auto steps = smallest(memory.spill.empty() ? 0 : path.length(), [&](size_t n) {
      strategy.placement = path.at(n);
      return fits_host(strategy);
    });
    if (!steps) return;
    strategy.placement = path.at(*steps);
    found.push_back(strategy);
    const bool away = std::ranges::find(strategy.placement, Placement::on_disk) != strategy.placement.end();
    for (strategy.ahead = 1; away && strategy.ahead <= 2 && fits_host(strategy); strategy.ahead++) found.push_back(strategy);
  };
  for (int32_t window : windows_to_try(memory, true, blocks.size())) {
    Strategy strategy = limits.plain();
    strategy.window = window;
    strategy.keep = keep_as_told(blocks, memory);
    const size_t before = found.size();
    if (fits_device(strategy)) {
      add(strategy);
    } else if (open) {
      if (const auto mixed = with_least_recompute(blocks, micros, strategy, limits.device)) add(*mixed);
    }
    if (found.size() > before) continue;
    // Offload inputs that layers keep to host memory.
    if (open) strategy.keep = recompute_all(blocks);
    const auto parked = smallest(layers, [&](size_t n) {
      strategy.offloads = parking(strategy.keep, n);
      return fits_device(strategy);
    });
    if (!parked) break;  // a larger window would not fit either
    strategy.offloads = parking(strategy.keep, *parked);
    add(strategy);
  }
  return found;
}

}  // namespace

std::vector<Strategy> fitting_strategies(const std::vector<BlockFacts>& blocks, int32_t micros,
                                         const StrategyLimits& limits) {
  if (limits.layout.device) return strategies_on_device(blocks, micros, limits);
  const MemorySettings& memory = limits.memory;
  const bool open = memory.recompute == Recompute::automatic;
  std::vector<Strategy> found;
  const auto fits = [&](const Strategy& s) { return most_memory(blocks, micros, s) <= limits.room; };
  Strategy plain = limits.plain();
  plain.keep = keep_as_told(blocks, memory);
  if (fits(plain)) return {plain};  // nothing is faster; recomputes only what the settings ask for
  if (open)
    if (auto in_memory = with_least_recompute(blocks, micros, plain, limits.room)) found.push_back(*in_memory);
  if (memory.spill.empty()) return found;

  // Inputs of layers are offloaded last. Three cases: all state in memory; all state on disk; or all inputs offloaded, with
  // as little state on disk as fits.
  const size_t layers = blocks.size() - 2;
  const auto park_some = [&](Strategy strategy) {
    const auto count = smallest(layers, [&](size_t n) {
      strategy.offloads = parking(strategy.keep, n);
      return fits(strategy);
    });
    if (!count || *count == 0) return;
    strategy.offloads = parking(strategy.keep, *count);
    found.push_back(strategy);
  };
  const bool may_park = open || memory.recompute == Recompute::full || memory.recompute == Recompute::every;
  if (may_park) {
    Strategy parked = plain;
    if (open) parked.keep = recompute_all(blocks);
    park_some(parked);
  }

  const PlacementPath path(blocks);
  std::vector<std::vector<Keep>> keeps{keep_as_told(blocks, memory)};
  const bool large = is_large(blocks, micros);
  if (open && !blocks[1].packs_input && !large) keeps.push_back(recompute_feed_forward(blocks));
  if (open) keeps.push_back(recompute_all(blocks));
  std::vector<int32_t> windows = windows_to_try(memory, false, blocks.size());
  if (large) windows.resize(1);
  for (int32_t window : windows) {
    Strategy strategy = limits.plain();
    strategy.order = ComputeOrder::by_block;
    strategy.window = window;
    for (const std::vector<Keep>& keep : keeps) {
      strategy.keep = keep;
      const auto steps = smallest(path.length(), [&](size_t n) {
        strategy.placement = path.at(n);
        return fits(strategy);
      });
      if (!steps) continue;
      strategy.placement = path.at(*steps);
      found.push_back(strategy);
    }
    strategy.placement = path.at(path.length());
    if (large && !found.empty()) continue;
    if (may_park) {
      Strategy parked = strategy;
      parked.keep = open ? recompute_all(blocks) : strategy.keep;
      park_some(parked);
      parked.offloads = parking(parked.keep, layers);
      const auto steps = smallest(path.length(), [&](size_t n) {
        parked.placement = path.at(n);
        return fits(parked);
      });
      if (steps) {
        parked.placement = path.at(*steps);
        found.push_back(parked);
      }
    }
    if (open)
      if (auto mixed = with_least_recompute(blocks, micros, strategy, limits.room)) found.push_back(*mixed);
  }
  return found;
}

Strategy tightest_strategy(const std::vector<BlockFacts>& blocks, int32_t micros, const StrategyLimits& limits) {
  Strategy strategy = limits.plain();
  const bool free = limits.memory.recompute == Recompute::automatic;
  strategy.keep = free ? recompute_all(blocks) : keep_as_told(blocks, limits.memory);
  if (limits.layout.device) {
    strategy.window = limits.memory.window > 0 ? static_cast<int32_t>(limits.memory.window) : 1;
    if (!limits.memory.spill.empty()) strategy.placement = PlacementPath(blocks).at(PlacementPath(blocks).length());
    if (most_memory(blocks, micros, strategy, Tier::device) > limits.device)
      strategy.offloads = parking(strategy.keep, blocks.size() - 2);
    return strategy;
  }
  if (limits.memory.spill.empty()) return strategy;
  const PlacementPath path(blocks);
  strategy.order = ComputeOrder::by_block;
  strategy.placement = path.at(path.length());
  strategy.window = limits.memory.window > 0 ? static_cast<int32_t>(limits.memory.window) : 1;
  // Small inputs take less memory than the staging that offloads them.
  Strategy parked = strategy;
  parked.offloads = parking(parked.keep, blocks.size() - 2);
  return most_memory(blocks, micros, parked) < most_memory(blocks, micros, strategy) ? parked : strategy;
}

std::string describe(const Strategy& strategy) {
  std::string text;
  const auto say = [&](std::string part) { text += (text.empty() ? "" : ", ") + part; };
  if (strategy.recomputes()) {
    const auto count = [&](Keep keep) { return std::count(strategy.keep.begin() + 1, strategy.keep.end() - 1, keep); };
    const auto layers = static_cast<int64_t>(strategy.keep.size()) - 2, selective = count(Keep::attention);
    const auto whole = count(Keep::input) + count(Keep::none);
    const bool chains = count(Keep::none) > 0;
    if (selective == layers) say("selective recompute");
    else if (selective > 0) say(fmt::format("{} of {} layers recomputed selectively", selective, layers));
    if (whole == layers && !chains) say("full recompute");
    else if (whole > 0) say(fmt::format("{} of {} layers recomputed{}", whole, layers, chains ? " in chains" : ""));
  }
  if (strategy.spills()) {
    const auto away = std::count(strategy.placement.begin(), strategy.placement.end(), Placement::on_disk);
    const auto moments = std::count(strategy.placement.begin(), strategy.placement.end(), Placement::optimizer_on_disk);
    if (away > 0) say(fmt::format("{} of {} blocks on disk", away, strategy.placement.size()));
    if (moments > 0) say(fmt::format("moments of {} {} on disk", moments, moments == 1 ? "block" : "blocks"));
    const auto parked = std::count(strategy.offloads.begin(), strategy.offloads.end(), true);
    const std::string_view where = strategy.layout.device ? "in the host's memory" : "on disk";
    if (parked > 0) say(fmt::format("inputs of {} layers {}", parked, where));
    if (!strategy.placement.empty() && !strategy.layout.device) say(fmt::format("window {}", strategy.window));
  }
  if (strategy.layout.device) say(fmt::format("window {} on the device", strategy.window));
  if (strategy.ahead > 0) say(fmt::format("loading from disk {} blocks ahead", strategy.ahead));
  return text;
}

}  // namespace megalith

#include "planner/fitting.h"

#include <algorithm>

#include "config/resolve_layout.h"
#include "base/error.h"
#include "planner/budget.h"
#include "planner/run_blocks.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

// Beyond this many tokens at once matrix products get no faster, but activations grow.
constexpr int64_t kTokensEnough = 4096;
// A step is a list of ops, some for every block and micro-batch: more than these would take longer to plan than to run.
constexpr int64_t kMostMicros = 1 << 16;
// Below this many products are slow, and computing layers again costs less than smaller micro-batches.
constexpr int64_t kTokensFew = 512;

// Whether the step fits with that micro-batch, by a strategy that is always the same: memory follows from the order
// alone, no speeds are needed.
bool fits_plainly(const Config& config, int64_t micro_batch, int64_t room) {
  const auto blocks = facts_for(config, micro_batch);
  const int32_t micros = micros_of(config, micro_batch);
  for (int32_t stage = 0; stage < stages_of(config); stage++) {
    StrategyLimits limits = limits_of(config, blocks, stage, room);
    Strategy plain = limits.plain();
    limits.memory = {.recompute = config.memory.recompute, .recompute_every = config.memory.recompute_every};
    if (config.memory.recompute != Recompute::automatic) plain.keep = tightest_strategy(blocks, micros, limits).keep;
    if (most_memory(blocks, micros, plain) > room) return false;
    if (config.memory.device && most_memory(blocks, micros, plain, Tier::device) > room_on_device(device_of(config)))
      return false;
  }
  return true;
}

}  // namespace

int32_t stages_of(const Config& config) { return static_cast<int32_t>(config.parallel.pipeline); }

StrategyLimits limits_of(const Config& config, const std::vector<BlockFacts>& blocks, int32_t stage, int64_t room) {
  StrategyLimits limits{.memory = config.memory, .room = room};
  limits.layout.mesh = Mesh::of_stage(layout_of(config), stage);
  limits.layout.device = config.memory.device.has_value();
  if (limits.layout.device) limits.device = room_on_device(device_of(config));
  const Layout& layout = limits.layout.sizes();
  if (layout.pipeline > 1) limits.layout.stages = {balanced_stages(blocks, layout.pipeline, layout.chunks)};
  return limits;
}

int64_t least_memory(const Config& config, int64_t micro_batch, Tier tier) {
  const auto blocks = facts_for(config, micro_batch);
  const int32_t micros = micros_of(config, micro_batch);
  int64_t most = 0;
  for (int32_t stage = 0; stage < stages_of(config); stage++) {
    const Strategy tightest = tightest_strategy(blocks, micros, limits_of(config, blocks, stage, 0));
    most = std::max(most, most_memory(blocks, micros, tightest, tier));
  }
  return most;
}

bool fits_tightly(const Config& config, int64_t micro_batch, int64_t room) {
  return least_memory(config, micro_batch) <= room &&
         (!config.memory.device || least_memory(config, micro_batch, Tier::device) <= room_on_device(device_of(config)));
}

void check_micro_batches(const Config& config) {
  const int64_t largest = config.train.micro_batch > 0 ? config.train.micro_batch
                                                       : std::max<int64_t>(1, kTokensEnough / config.data.sequence);
  const int64_t most = largest * kMostMicros;
  if (rank_batch(config) <= most) return;
  throw UserError({"", "train.batch",
                   fmt::format("at most {} sequences a rank, {} micro-batches of {}", most, kMostMicros, largest),
                   fmt::format("{}", rank_batch(config)),
                   config.train.micro_batch > 0 ? "a larger train.micro_batch" : "a smaller batch, or more ranks"});
}

int64_t choose_micro_batch(const Config& config, int64_t room) {
  std::vector<int64_t> divisors;  // large to small
  const int64_t batch = rank_batch(config);
  // A pipeline wants several micro-batches a stage to be busy.
  const int64_t stages = config.parallel.pipeline;
  const int64_t largest = stages > 1 ? std::max<int64_t>(1, batch / (4 * stages)) : batch;
  for (int64_t micro = largest; micro >= 1; micro--)
    if (batch % micro == 0 && (micro * config.data.sequence <= kTokensEnough || micro == 1))
      divisors.push_back(micro);
  for (int64_t micro : divisors)
    if (micro * config.data.sequence >= kTokensFew && fits_plainly(config, micro, room)) return micro;
  for (int64_t micro : divisors)
    if (fits_tightly(config, micro, room)) return micro;
  return divisors.back();
}

}  // namespace megalith

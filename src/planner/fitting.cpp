#include "planner/fitting.h"

#include <algorithm>

#include "base/error.h"
#include "planner/budget.h"
#include "planner/run_blocks.h"
#include "schedule/passes/residency.h"

namespace megalith {
namespace {

// With more tokens at once, matrix products do not become faster, but activations grow.
constexpr int64_t kTokensEnough = 4096;
// A step is a list with several ops for each block and micro-batch. Planning checks many such lists, so they must be short.
constexpr int64_t kMostBlocksTimesMicros = int64_t{1} << 16;
// With fewer tokens, matrix products are slow: recomputing layers costs less than a smaller micro-batch.
constexpr int64_t kTokensFew = 512;

int64_t most_micros(const PlanInput& input) {
  return std::max<int64_t>(1, kMostBlocksTimesMicros / (input.shape.layers + 2));
}

// Micro-batches that the planner may choose, large to small.
std::vector<int64_t> micro_batches_to_try(const PlanInput& input) {
  const int64_t batch = input.rank_batch();
  // A pipeline needs several micro-batches per stage to be busy.
  const int64_t stages = input.layout.pipeline;
  const int64_t largest = stages > 1 ? std::max<int64_t>(1, batch / (4 * stages)) : batch;
  std::vector<int64_t> divisors;
  for (int64_t micro = std::min(largest, std::max<int64_t>(1, kTokensEnough / input.sequence)); micro >= 1; micro--)
    if (batch % micro == 0 && batch / micro <= most_micros(input)) divisors.push_back(micro);
  return divisors;
}

// True if the step fits with this micro-batch and a fixed strategy. Memory depends only on the order of ops, so no speeds
// are needed.
bool fits_plainly(const PlanInput& input, int64_t micro_batch, int64_t room) {
  const auto blocks = facts_for(input, micro_batch);
  const int32_t micros = input.micros_of(micro_batch);
  for (int32_t stage = 0; stage < input.layout.pipeline; stage++) {
    StrategyLimits limits = limits_of(input, blocks, stage, room);
    Strategy plain = limits.plain();
    limits.memory = {.recompute = input.memory.recompute, .recompute_every = input.memory.recompute_every};
    if (input.memory.recompute != Recompute::automatic) plain.keep = tightest_strategy(blocks, micros, limits).keep;
    if (most_memory(blocks, micros, plain) > room) return false;
    if (input.memory.device && most_memory(blocks, micros, plain, Tier::device) > room_on_device(device_of(input.memory)))
      return false;
  }
  return true;
}

}  // namespace

StrategyLimits limits_of(const PlanInput& input, const std::vector<BlockFacts>& blocks, int32_t stage, int64_t room) {
  StrategyLimits limits{.memory = input.memory, .room = room};
  limits.layout.mesh = Mesh::of_stage(input.layout, stage);
  limits.layout.device = input.memory.device.has_value();
  if (limits.layout.device) limits.device = room_on_device(device_of(input.memory));
  const Layout& layout = limits.layout.sizes();
  if (layout.pipeline > 1) limits.layout.stages = {balanced_stages(blocks, layout.pipeline, layout.chunks)};
  return limits;
}

int64_t least_memory(const PlanInput& input, int64_t micro_batch, Tier tier) {
  const auto blocks = facts_for(input, micro_batch);
  const int32_t micros = input.micros_of(micro_batch);
  int64_t most = 0;
  for (int32_t stage = 0; stage < input.layout.pipeline; stage++) {
    const Strategy tightest = tightest_strategy(blocks, micros, limits_of(input, blocks, stage, 0));
    most = std::max(most, most_memory(blocks, micros, tightest, tier));
  }
  return most;
}

bool fits_tightly(const PlanInput& input, int64_t micro_batch, int64_t room) {
  return least_memory(input, micro_batch) <= room &&
         (!input.memory.device || least_memory(input, micro_batch, Tier::device) <= room_on_device(device_of(input.memory)));
}

void check_micro_batches(const PlanInput& input) {
  const int64_t batch = input.rank_batch(), most = most_micros(input);
  const auto refuse = [&](int64_t largest, const char* hint) {
    throw UserError({"", "train.batch",
                     fmt::format("at most {} sequences per rank ({} micro-batches of {})", most * largest, most, largest),
                     fmt::format("{}", batch), hint});
  };
  if (input.micro_batch > 0) {
    if (batch / input.micro_batch > most) refuse(input.micro_batch, "use a larger train.micro_batch");
  } else if (micro_batches_to_try(input).empty()) {
    const int64_t largest = std::max<int64_t>(1, kTokensEnough / input.sequence);
    refuse(largest, batch > most * largest ? "use a smaller batch or more ranks"
                                           : "use a batch with a larger divisor, for example a power of two");
  }
}

std::optional<int64_t> smallest_micro_batch(const PlanInput& input) {
  if (input.micro_batch > 0) return input.micro_batch;
  const std::vector<int64_t> divisors = micro_batches_to_try(input);
  return divisors.empty() ? std::nullopt : std::optional(divisors.back());
}

int64_t choose_micro_batch(const PlanInput& input, int64_t room) {
  const std::vector<int64_t> divisors = micro_batches_to_try(input);
  for (int64_t micro : divisors)
    if (micro * input.sequence >= kTokensFew && fits_plainly(input, micro, room)) return micro;
  for (int64_t micro : divisors)
    if (fits_tightly(input, micro, room)) return micro;
  return divisors.back();
}

}  // namespace megalith

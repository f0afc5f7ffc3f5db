#include "schedule/predict/memory.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "schedule/op_type.h"
#include "schedule/ops/common.h"
#include "schedule/values.h"

namespace megalith {
namespace {

using ops::computing_bytes, ops::kept_bytes, ops::kFloatBytes, ops::recomputed_bytes;

struct Amount {
  MemoryKind kind = MemoryKind::activations;
  int64_t bytes = 0;
};

// With a device, blocks compute in device memory, and the state of the model stays in host memory.
bool on_host(Value value) {
  return value == Value::master_parameters || value == Value::reduced_gradient || value == Value::offloaded_input;
}

Tier tier_of(const Schedule& schedule, Value value) {
  return schedule.layout.device && !on_host(value) ? Tier::device : Tier::host;
}

// The memory that a value occupies while it exists. It is 0 for values that are resident or too small to count.
Amount amount(const Schedule& schedule, const Effect& effect, Tier tier) {
  if (tier_of(schedule, effect.value) != tier) return {};
  switch (effect.value) {
    case Value::activation:
    case Value::output_gradient:
    case Value::representation:
    case Value::representation_gradient: return {MemoryKind::activations, schedule.blocks[effect.block].output_bytes};
    case Value::saved_attention: return {MemoryKind::saved, kept_bytes(schedule, effect.block)};
    case Value::saved_tensors: return {MemoryKind::saved, recomputed_bytes(schedule, effect.block)};
    case Value::parameters:
      if (schedule.parameters_stay(effect.block)) return {};
      return {MemoryKind::parameters, computing_bytes(schedule.blocks[effect.block])};
    case Value::master_parameters:
      if (schedule.placed(effect.block) != Placement::on_disk) return {};
      return {MemoryKind::parameters, kFloatBytes * schedule.slice_elements(effect.block)};
    case Value::gradient:
      if (schedule.gradient_stays(effect.block)) return {};
      return {MemoryKind::gradients, kFloatBytes * schedule.blocks[effect.block].parameters};
    case Value::tied_gradient:  // a table that is not borrowed has its gradient in the block's gradient
      if (!schedule.borrows(effect.block)) return {};
      return {MemoryKind::gradients, kFloatBytes * schedule.blocks[effect.block].parameters};
    case Value::reduced_gradient:
      if (!schedule.separate_master() || schedule.placed(effect.block) != Placement::on_disk) return {};
      return {MemoryKind::gradients, kFloatBytes * schedule.slice_elements(effect.block)};
    case Value::deferred_inputs: return {MemoryKind::saved, schedule.blocks[effect.block].deferred_bytes};
    case Value::offloaded_input:  // without a device, the input is on disk
      if (!schedule.layout.device) return {};
      return {MemoryKind::activations, schedule.blocks[effect.block - 1].output_bytes};
    case Value::sparse_gradient: return {MemoryKind::aside, schedule.blocks[effect.block].sparse_gradient_bytes};
    default: return {};
  }
}

int64_t workspace(const Schedule& schedule, const Op& op, Tier tier) {
  const OpType& type = type_of(op.kind);
  const Tier runs_in = schedule.layout.device && type.computes ? Tier::device : Tier::host;
  return runs_in == tier ? type.workspace(schedule, op) : 0;
}

MemoryKind workspace_kind(const Op& op) {
  return op.lane == Lane::read || op.lane == Lane::write ? MemoryKind::staging : MemoryKind::workspace;
}

}  // namespace

std::string_view name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::parameters: return "parameters";
    case MemoryKind::gradients: return "gradients";
    case MemoryKind::optimizer: return "optimizer";
    case MemoryKind::activations: return "activations";
    case MemoryKind::saved: return "saved for backward";
    case MemoryKind::aside: return "sparse gradients";
    case MemoryKind::workspace: return "workspace";
    case MemoryKind::staging: return "staging";
  }
  return "unknown kind";
}

int64_t MemoryUse::total() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

MemoryUse resident(const Schedule& schedule, Tier tier) {
  MemoryUse use;
  if (tier == Tier::device) return use;
  for (size_t b = 0; b < schedule.blocks.size(); b++) {
    const BlockFacts& block = schedule.blocks[b];
    const Placement placed = schedule.placed(static_cast<BlockId>(b));
    const auto id = static_cast<BlockId>(b);
    if (!schedule.holds(id)) continue;
    const int64_t slice = kFloatBytes * schedule.slice_elements(id);
    if (placed == Placement::in_memory || !block.optimizer_streams)
      use[MemoryKind::optimizer] += schedule.optimizer_slice_bytes(id);
    if (placed == Placement::on_disk) continue;
    // The master parameters, whole or a slice. They need memory of their own unless they are part of the parameters that the
    // block computes with.
    if (schedule.parameters_stay(id)) use[MemoryKind::parameters] += computing_bytes(block);
    if (!schedule.parameters_stay(id) || block.compute_copy_bytes > 0) use[MemoryKind::parameters] += slice;
    if (!schedule.training) continue;
    // If the whole gradient does not stay, the slice of the summed gradient needs memory.
    use[MemoryKind::gradients] += schedule.gradient_stays(id) ? block.parameters * kFloatBytes : slice;
  }
  return use;
}

MemoryLedger::MemoryLedger(const Schedule& schedule, Tier tier)
    : schedule_(schedule), tier_(tier), now_(resident(schedule, tier)), peak_(now_) {}

void MemoryLedger::start(OpId op) {
  effects_of(schedule_, schedule_.ops[op], effects_);
  for (const Effect& effect : effects_) {
    if (effect.access != Access::create) continue;
    const Amount it = amount(schedule_, effect, tier_);
    now_[it.kind] += it.bytes;
  }
  now_[workspace_kind(schedule_.ops[op])] += workspace(schedule_, schedule_.ops[op], tier_);
  if (now_.total() <= peak_.total()) return;
  peak_ = now_;
  peak_op_ = op;
}

void MemoryLedger::finish(OpId op) {
  effects_of(schedule_, schedule_.ops[op], effects_);
  for (const Effect& effect : effects_) {
    if (effect.access != Access::consume) continue;
    const Amount it = amount(schedule_, effect, tier_);
    now_[it.kind] -= it.bytes;
  }
  now_[workspace_kind(schedule_.ops[op])] -= workspace(schedule_, schedule_.ops[op], tier_);
}

MemoryUse memory_in_order(const Schedule& schedule, Tier tier) {
  MemoryLedger ledger(schedule, tier);
  for (OpId op = 0; op < static_cast<OpId>(schedule.ops.size()); op++) {
    ledger.start(op);
    ledger.finish(op);
  }
  return ledger.peak();
}

MemoryBound memory_bound(const Schedule& schedule, const HappensBefore& order, Tier tier) {
  MEGALITH_ASSERT(order.cycle().empty());
  struct Life {
    int64_t bytes = 0;
    OpId maker = kNoOp, taker = kNoOp;  // the ops that create and consume the value
  };
  std::vector<Life> lives;                                        // a value may have several lives, one after another
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> current(value_count(schedule), kNone);  // index into `lives`, by value
  Effects effects;
  for (OpId op : order.sequence()) {
    effects_of(schedule, schedule.ops[op], effects);
    for (const Effect& effect : effects) {
      size_t& life = current[value_index(schedule, effect)];
      if (effect.access == Access::create) {
        life = lives.size();
        lives.push_back({amount(schedule, effect, tier).bytes, op, kNoOp});
      }
      if (effect.access == Access::consume && life != kNone) lives[life].taker = op;
    }
  }
  std::array<int64_t, kLanes> most_workspace{};  // the largest workspace of an op, by lane
  for (const Op& op : schedule.ops) {
    int64_t& most = most_workspace[static_cast<size_t>(op.lane)];
    most = std::max(most, workspace(schedule, op, tier));
  }

  // Each lane gives an upper bound, and the lowest one is the answer. At every moment, the lane runs an op or waits to start
  // it. For each op of the lane, add up all values that may be alive at that time:
  // - While the op runs: all values, except those whose maker always starts later or whose taker is always done before.
  // - While the lane waits: in addition, the values whose taker the lane may be waiting for.
  // The other lanes may run any op meanwhile, so the largest workspace of each of them is added.
  const int64_t base = resident(schedule, tier).total();
  MemoryBound lowest{std::numeric_limits<int64_t>::max(), kNoOp};
  for (size_t l = 0; l < kLanes; l++) {
    const Lane lane = static_cast<Lane>(l);
    const std::vector<OpId>& ops = order.lane(lane);
    if (ops.empty()) continue;
    std::vector<int64_t> running(ops.size() + 2, 0), waiting(ops.size() + 2, 0);  // change in bytes, by position on the lane
    for (const Life& life : lives) {
      if (life.bytes == 0) continue;
      const auto first = static_cast<size_t>(order.done_before(life.maker, lane));
      auto end = ops.end();
      if (life.taker != kNoOp) {
        end = std::partition_point(ops.begin(), ops.end(),
                                   [&](OpId op) { return !order.before(life.taker, op); });
      }
      const auto last = static_cast<size_t>(end - ops.begin());
      running[first] += life.bytes;
      running[last] -= life.bytes;
      // While the lane waits, its own ops do not run.
      const bool makes = schedule.ops[life.maker].lane == lane;
      const bool takes = life.taker != kNoOp && schedule.ops[life.taker].lane == lane;
      waiting[makes ? first + 1 : first] += life.bytes;
      waiting[takes ? last : last + 1] -= life.bytes;
    }
    int64_t others = 0;
    for (size_t other = 0; other < kLanes; other++) others += other == l ? 0 : most_workspace[other];
    MemoryBound bound{base, kNoOp};
    int64_t at_work = base + others, at_wait = base + others;
    for (size_t i = 0; i <= ops.size(); i++) {
      at_work += running[i];
      at_wait += waiting[i];
      const int64_t own = i < ops.size() ? at_work + workspace(schedule, schedule.ops[ops[i]], tier) : 0;
      const OpId op = ops[std::min(i, ops.size() - 1)];
      if (std::max(own, at_wait) > bound.bytes) bound = {std::max(own, at_wait), op};
    }
    if (bound.bytes < lowest.bytes) lowest = bound;
  }
  if (lowest.bytes == std::numeric_limits<int64_t>::max()) return {base, kNoOp};
  return lowest;
}

}  // namespace megalith

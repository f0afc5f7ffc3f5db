#include "schedule/passes/residency.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "schedule/ops/all.h"
#include "schedule/values.h"

namespace megalith {
namespace {

// Blocks whose parameters an op reads although they are not there when the step begins. Does not include the table that
// another rank owns: sync_tied_table provides it.
std::vector<BlockId> loaded_for(const Schedule& step, const Op& op) {
  std::vector<BlockId> blocks;
  Effects effects;
  effects_of(step, op, effects);
  for (const Effect& effect : effects)
    if (effect.value == Value::parameters && effect.access == Access::read && step.holds(effect.block) &&
        (step.placed(effect.block) != Placement::in_memory || step.separate_master()))
      blocks.push_back(effect.block);
  return blocks;
}

// Blocks whose gradient an op adds to and whose gradient does not stay in memory between steps.
std::vector<BlockId> temporary_gradients_of(const Schedule& step, const Op& op) {
  std::vector<BlockId> blocks;
  Effects effects;
  effects_of(step, op, effects);
  for (const Effect& effect : effects)
    if ((effect.value == Value::gradient || effect.value == Value::tied_gradient) && effect.access == Access::accumulate &&
        step.holds(effect.block) && !step.gradient_stays(effect.block))
      blocks.push_back(effect.block);
  return blocks;
}

// An interval in which the parameters of a block are there: from the first to the last use of the block. A use is a run of
// ops on the compute lane that need the same blocks.
struct Interval {
  BlockId block = kNoBlock;
  int32_t first_use = 0, last_use = 0;
  std::vector<OpId> ops;  // ops of the original step that need the parameters
  int32_t before = -1;    // the block's previous interval; -1 if this is the first one
};

class Resident {
 public:
  Resident(Schedule step, int32_t window, int32_t ahead) : step_(std::move(step)), window_(window), ahead_(ahead) {}

  Schedule run() {
    find_intervals();
    write();
    Schedule result = std::move(step_);
    result.ops = std::move(ops_);
    return result;
  }

 private:
  void find_intervals() {
    const size_t blocks = step_.blocks.size();
    std::vector<int32_t> open(blocks, -1);  // the block's last interval
    int32_t use = -1;
    std::vector<BlockId> before;
    for (OpId op = 0; op < static_cast<OpId>(step_.ops.size()); op++) {
      const std::vector<BlockId> needs = loaded_for(step_, step_.ops[op]);
      if (needs.empty()) continue;
      MEGALITH_ASSERT(step_.ops[op].lane == Lane::compute || step_.ops[op].kind == ops::sync_tied_table,
                      "parameters are used on the compute lane");
      if (needs != before) {
        use++;
        use_ends_.push_back(op);
        before = needs;
      }
      use_ends_.back() = op;
      for (BlockId block : needs) {
        const bool goes = !step_.parameters_stay(block);
        const bool known = open[block] >= 0;
        if (!known || (goes && use - intervals_[open[block]].last_use > window_)) {
          const int32_t before_it = std::exchange(open[block], static_cast<int32_t>(intervals_.size()));
          intervals_.push_back({block, use, use, {op}, before_it});
        } else {
          intervals_[open[block]].last_use = use;
          intervals_[open[block]].ops.push_back(op);
        }
      }
    }
    // A block that no op of this step needs has no interval. Only steps that do nothing but save have such blocks.
  }

  // The op after which the parameters of an interval may be loaded, or kNoOp for the beginning of the step.
  OpId may_load_after(const Interval& interval) const { return end_of(interval.first_use - window_); }
  // The same for the host copy that is uploaded to a device. It is not loaded before the first use of the block's previous
  // interval.
  OpId may_load_master_after(const Interval& interval) const {
    const int32_t use = interval.first_use - window_ - ahead_;
    return end_of(interval.before < 0 ? use : std::max(use, intervals_[static_cast<size_t>(interval.before)].first_use));
  }
  OpId end_of(int32_t use) const { return use < 0 ? kNoOp : use_ends_[static_cast<size_t>(use)]; }

  void write() {
    const size_t count = step_.ops.size();
    // Lists of intervals, indexed by the id of an original op plus one. Index 0 is before the first op.
    std::vector<std::vector<size_t>> load_after(count + 1), load_master_after(count + 1), evict_after(count);
    for (size_t s = 0; s < intervals_.size(); s++) {
      const OpId after = may_load_after(intervals_[s]), home = ahead_ > 0 ? may_load_master_after(intervals_[s]) : after;
      load_after[static_cast<size_t>(after + 1)].push_back(s);
      load_master_after[static_cast<size_t>(home + 1)].push_back(s);
      if (!step_.parameters_stay(intervals_[s].block)) evict_after[intervals_[s].ops.back()].push_back(s);
    }
    loaded_.assign(intervals_.size(), kNoOp);
    master_loaded_.assign(intervals_.size(), kNoOp);
    zeroed_.assign(step_.blocks.size(), kNoOp);
    place_.assign(count, kNoOp);
    updated_.assign(step_.blocks.size(), kNoOp);
    last_evict_.assign(step_.blocks.size(), kNoOp);
    const auto come = [&](OpId after) {
      // First the parameters that are due now, so that loads which may come early do not delay them.
      const auto place = static_cast<size_t>(after + 1);
      for (size_t s : load_after[place]) provide(s, after);
      for (size_t s : load_master_after[place]) load_master(s, after);
    };
    come(kNoOp);
    for (OpId op = 0; op < static_cast<OpId>(count); op++) {
      copy(op);
      for (size_t s : evict_after[op]) evict(s);
      come(op);
    }
  }

  OpId add(Op op) {
    ops_.push_back(std::move(op));
    return static_cast<OpId>(ops_.size()) - 1;
  }

  // Loads the master of an interval from disk to host memory, unless it is loaded already or is not on disk.
  void load_master(size_t s, OpId after) {
    const Interval& interval = intervals_[s];
    const bool first = interval.before < 0, away = step_.placed(interval.block) == Placement::on_disk;
    if (master_loaded_[s] != kNoOp || !(first ? step_.placed(interval.block) != Placement::in_memory : away)) return;
    std::vector<OpId> room = room_after(after);
    if (!first && step_.layout.device)
      room.push_back(loaded_[static_cast<size_t>(interval.before)]);  // this load reads the host copy
    else if (last_evict_[interval.block] != kNoOp) room.push_back(last_evict_[interval.block]);
    master_loaded_[s] = loaded_[s] = add(
        {.kind = first ? ops::load_updated : ops::load, .block = interval.block, .lane = Lane::read, .after = std::move(room)});
    if (first) updated_[interval.block] = loaded_[s];
  }

  void provide(size_t s, OpId after) {
    const Interval& interval = intervals_[s];
    load_master(s, after);
    if (!step_.separate_master()) return;
    std::vector<OpId> room = master_loaded_[s] == kNoOp ? room_after(after) : std::vector<OpId>{master_loaded_[s]};
    // Without a device, the master was loaded only for this interval, and that load has already waited for room.
    if (step_.layout.device && master_loaded_[s] != kNoOp && after != kNoOp) room.push_back(last_on_compute_);
    if (last_evict_[interval.block] != kNoOp && (master_loaded_[s] == kNoOp || step_.layout.device))
      room.push_back(last_evict_[interval.block]);
    const OpKind kind = step_.layout.device ? ops::upload : ops::gather_parameters;
    loaded_[s] = add({.kind = kind,
                    .block = interval.block,
                    .lane = step_.layout.device ? Lane::upload : Lane::net,
                    .after = std::move(room)});
  }

  // The op that a load waits for, so that there is room: the last one on the compute lane, such as the evict after a use.
  std::vector<OpId> room_after(OpId op) const {
    return op == kNoOp ? std::vector<OpId>{} : std::vector<OpId>{last_on_compute_};
  }

  void evict(size_t s) {
    Op op{.kind = ops::evict, .block = intervals_[s].block, .after = {}};
    for (OpId use : intervals_[s].ops) op.after.push_back(place_[use]);
    last_evict_[op.block] = last_on_compute_ = add(std::move(op));
  }

  void copy(OpId old) {
    Op op = step_.ops[old];
    const bool spilled = op.block != kNoBlock && step_.placed(op.block) != Placement::in_memory;
    if (op.kind == ops::optimizer_step && spilled) return;  // load_updated of the next step applies it
    const std::vector<BlockId> adds = temporary_gradients_of(step_, op);
    for (BlockId block : adds)
      if (zeroed_[block] == kNoOp) zero_gradient(block);
    for (OpId& after : op.after) after = place_[after];
    for (BlockId block : loaded_for(step_, op)) op.after.push_back(loaded_[interval_at(block, old)]);
    for (BlockId block : adds) op.after.push_back(zeroed_[block]);
    // If only the optimizer state is on disk, load_updated leaves a zeroed gradient.
    if (op.kind == ops::backward && !step_.blocks[op.block].backward_uses_parameters && spilled &&
        step_.placed(op.block) == Placement::optimizer_on_disk)
      op.after.push_back(loaded_[first_interval(op.block)]);
    const bool brings_sum = op.kind == ops::reduce_gradient || op.kind == ops::download;
    if (brings_sum && spilled && !step_.gradient_stays(op.block) && step_.placed(op.block) == Placement::optimizer_on_disk)
      op.after.push_back(updated_[op.block]);  // this op consumes the sum of the previous step
    // At most two gradients in host memory wait to be written to disk.
    if (op.kind == ops::download && step_.placed(op.block) == Placement::on_disk && offloads_.size() >= 2)
      op.after.push_back(offloads_[offloads_.size() - 2]);
    const OpKind kind = op.kind;
    const BlockId block = op.block;
    place_[old] = add(std::move(op));
    if (step_.ops[old].lane == Lane::compute) last_on_compute_ = place_[old];
    if (kind == ops::gradient_norm && step_.placed(block) == Placement::on_disk)
      offload_gradient(block, place_[old]);
    const bool sums = kind == ops::reduce_gradient && step_.slices() && !step_.gradient_stays(block);
    if (sums || kind == ops::download) freed_.push_back(place_[old]);
  }

  // At most two gradients exist at a time: one is being computed, and one is being offloaded or reduced.
  void zero_gradient(BlockId block) {
    Op op{.kind = ops::zero_gradient, .block = block, .after = {}};
    // Wait for load_updated, which reads the gradient of the previous step.
    if (step_.placed(block) != Placement::in_memory) op.after.push_back(updated_[block]);
    if (freed_.size() >= 2) op.after.push_back(freed_[freed_.size() - 2]);
    zeroed_[block] = last_on_compute_ = add(std::move(op));
  }

  void offload_gradient(BlockId block, OpId norm) {
    const OpId op = add({.kind = ops::offload_gradient, .block = block, .lane = Lane::write, .after = {norm}});
    offloads_.push_back(op);
    if (!step_.separate_master()) freed_.push_back(op);  // otherwise reduce or download frees it
  }

  size_t first_interval(BlockId block) const {
    for (size_t s = 0; s < intervals_.size(); s++)
      if (intervals_[s].block == block) return s;
    MEGALITH_ASSERT(false, "{} is never used", step_.blocks[block].name);
    return 0;
  }

  size_t interval_at(BlockId block, OpId op) const {
    for (size_t s = 0; s < intervals_.size(); s++)
      if (intervals_[s].block == block && intervals_[s].ops.front() <= op && op <= intervals_[s].ops.back()) return s;
    MEGALITH_ASSERT(false, "{} is not in memory for op {}", step_.blocks[block].name, op);
    return 0;
  }

  Schedule step_;
  const int32_t window_, ahead_;
  std::vector<Interval> intervals_;             // by first use
  std::vector<OpId> use_ends_;         // by use: its last op in the original step
  std::vector<Op> ops_;                 // ops of the result
  std::vector<OpId> place_;             // by op of the original step: its new id
  // By interval: the op that provides the parameters: load_updated, load, gather or upload.
  std::vector<OpId> loaded_;
  std::vector<OpId> master_loaded_;           // by interval: load_updated or load; kNoOp: not needed or not added yet
  std::vector<OpId> zeroed_, updated_, last_evict_;  // by block
  std::vector<OpId> freed_;              // ops that free gradients which do not stay in memory
  std::vector<OpId> offloads_;
  OpId last_on_compute_ = kNoOp;
};

}  // namespace

Schedule with_residency(Schedule step, std::vector<Placement> placement, int32_t window, int32_t ahead) {
  MEGALITH_ASSERT(window >= 1 && step.placement.empty() && (ahead == 0 || step.layout.device));
  MEGALITH_ASSERT(placement.empty() || placement.size() == step.blocks.size());
  for (const Op& op : step.ops)
    MEGALITH_ASSERT(op.kind != ops::save, "saves are placed after spilling: they follow load_updated");
  const bool all_stay = std::all_of(placement.begin(), placement.end(), [](Placement p) { return p == Placement::in_memory; });
  if (all_stay && !step.separate_master()) return step;
  if (!all_stay) step.placement = std::move(placement);
  return Resident(std::move(step), window, ahead).run();
}

Schedule apply_pending_only(std::vector<BlockFacts> blocks, std::vector<Placement> placement, RankLayout layout) {
  Schedule step;
  step.blocks = std::move(blocks);
  step.placement = std::move(placement);
  step.layout = std::move(layout);
  step.micros = 0;
  step.training = false;
  for (BlockId block = 0; block < static_cast<BlockId>(step.blocks.size()); block++) {
    if (step.placed(block) == Placement::in_memory || !step.holds(block)) continue;
    step.ops.push_back({.kind = ops::load_updated, .block = block, .lane = Lane::read, .after = {}});
    // Evict the block before the next one is loaded.
    const auto updated = static_cast<OpId>(step.ops.size()) - 1;
    if (step.placed(block) == Placement::on_disk)
      step.ops.push_back({.kind = ops::evict, .block = block, .lane = Lane::read, .after = {updated}});
  }
  return step;
}

}  // namespace megalith

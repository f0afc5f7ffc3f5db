#include "schedule/residency_pass.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "schedule/effects.h"

namespace megalith {
namespace {

constexpr int64_t kStateBytes = 4;

// Which blocks' parameters an op of the step takes that are not there when the step begins. What is borrowed from
// another rank comes by itself.
std::vector<BlockId> coming_needs(const Schedule& step, const Op& op) {
  std::vector<BlockId> blocks;
  for (const Effect& effect : effects(step, op))
    if (effect.thing == Thing::parameters && effect.touch == Touch::needs && step.holds(effect.block) &&
        (step.placed(effect.block) != Placement::memory || step.home_is_apart()))
      blocks.push_back(effect.block);
  return blocks;
}

// Which block's gradient an op of the step adds to, where that gradient is not whole in memory all the time.
std::vector<BlockId> passing_adds(const Schedule& step, const Op& op) {
  std::vector<BlockId> blocks;
  for (const Effect& effect : effects(step, op))
    if ((effect.thing == Thing::gradient || effect.thing == Thing::tied_gradient) && effect.touch == Touch::adds &&
        step.holds(effect.block) && !step.gradient_stays(effect.block))
      blocks.push_back(effect.block);
  return blocks;
}

// A time in which a block's parameters stay: from the first to the last turn that needs them.
struct Stay {
  BlockId block = kNoBlock;
  int32_t first_turn = 0, last_turn = 0;
  std::vector<OpId> uses;  // ops of the step before the pass
  int32_t before = -1;     // the block's stay before this one
};

class Resident {
 public:
  Resident(Schedule step, int32_t window, int32_t ahead) : step_(std::move(step)), window_(window), ahead_(ahead) {}

  Schedule run() {
    find_stays();
    write();
    Schedule result = std::move(step_);
    result.ops = std::move(ops_);
    return result;
  }

 private:
  void find_stays() {
    const size_t blocks = step_.blocks.size();
    std::vector<int32_t> open(blocks, -1);  // the block's last stay
    int32_t turn = -1;
    std::vector<BlockId> before;
    for (OpId op = 0; op < static_cast<OpId>(step_.ops.size()); op++) {
      const std::vector<BlockId> needs = coming_needs(step_, step_.ops[op]);
      if (needs.empty()) continue;
      MEGALITH_ASSERT(step_.ops[op].lane == Lane::compute || step_.ops[op].kind == OpKind::lend,
                      "parameters are used on the compute lane");
      if (needs != before) {
        turn++;
        turn_ends_.push_back(op);
        before = needs;
      }
      turn_ends_.back() = op;
      for (BlockId block : needs) {
        const bool goes = !step_.parameters_stay(block);
        const bool known = open[block] >= 0;
        if (!known || (goes && turn - stays_[open[block]].last_turn > window_)) {
          const int32_t before_it = std::exchange(open[block], static_cast<int32_t>(stays_.size()));
          stays_.push_back({block, turn, turn, {op}, before_it});
        } else {
          stays_[open[block]].last_turn = turn;
          stays_[open[block]].uses.push_back(op);
        }
      }
    }
    // A block that no op of this step needs (it cannot be, but for a step that only saves) has no stay.
  }

  // The op after which a stay may be brought in; kNoOp: from the step's begin.
  OpId may_begin_after(const Stay& stay) const { return end_of(stay.first_turn - window_); }
  // The same for what a device's stay comes from: once the one before it has come.
  OpId may_come_home_after(const Stay& stay) const {
    const int32_t turn = stay.first_turn - window_ - ahead_;
    return end_of(stay.before < 0 ? turn : std::max(turn, stays_[static_cast<size_t>(stay.before)].first_turn));
  }
  OpId end_of(int32_t turn) const { return turn < 0 ? kNoOp : turn_ends_[static_cast<size_t>(turn)]; }

  void write() {
    const size_t count = step_.ops.size();
    // Stays, by op of the step plus one: what comes before the first op has place 0.
    std::vector<std::vector<size_t>> come_after(count + 1), come_home_after(count + 1), go_after(count);
    for (size_t s = 0; s < stays_.size(); s++) {
      const OpId after = may_begin_after(stays_[s]), home = ahead_ > 0 ? may_come_home_after(stays_[s]) : after;
      come_after[static_cast<size_t>(after + 1)].push_back(s);
      come_home_after[static_cast<size_t>(home + 1)].push_back(s);
      if (!step_.parameters_stay(stays_[s].block)) go_after[stays_[s].uses.back()].push_back(s);
    }
    came_.assign(stays_.size(), kNoOp);
    at_home_.assign(stays_.size(), kNoOp);
    cleared_.assign(step_.blocks.size(), kNoOp);
    place_.assign(count, kNoOp);
    renewed_.assign(step_.blocks.size(), kNoOp);
    last_drop_.assign(step_.blocks.size(), kNoOp);
    const auto come = [&](OpId after) {
      // What is due now is not behind what may come early.
      const auto place = static_cast<size_t>(after + 1);
      for (size_t s : come_after[place]) bring(s, after);
      for (size_t s : come_home_after[place]) bring_home(s, after);
    };
    come(kNoOp);
    for (OpId op = 0; op < static_cast<OpId>(count); op++) {
      copy(op);
      for (size_t s : go_after[op]) drop(s);
      come(op);
    }
  }

  OpId add(Op op) {
    ops_.push_back(std::move(op));
    return static_cast<OpId>(ops_.size()) - 1;
  }

  // From disk to where it is at home, once.
  void bring_home(size_t s, OpId after) {
    const Stay& stay = stays_[s];
    const bool first = stay.before < 0, away = step_.placed(stay.block) == Placement::away;
    if (at_home_[s] != kNoOp || !(first ? step_.placed(stay.block) != Placement::memory : away)) return;
    std::vector<OpId> room = room_after(after);
    if (!first && step_.division.device)
      room.push_back(came_[static_cast<size_t>(stay.before)]);  // the host's copy went there
    else if (last_drop_[stay.block] != kNoOp) room.push_back(last_drop_[stay.block]);
    at_home_[s] = came_[s] = add(
        {.kind = first ? OpKind::renew : OpKind::fetch, .block = stay.block, .lane = Lane::read, .after = std::move(room)});
    if (first) renewed_[stay.block] = came_[s];
  }

  void bring(size_t s, OpId after) {
    const Stay& stay = stays_[s];
    bring_home(s, after);
    if (!step_.home_is_apart()) return;
    std::vector<OpId> room = at_home_[s] == kNoOp ? room_after(after) : std::vector<OpId>{at_home_[s]};
    // (Where what came home came for this alone, its own wait will do.)
    if (step_.division.device && at_home_[s] != kNoOp && after != kNoOp) room.push_back(last_on_compute_);
    if (last_drop_[stay.block] != kNoOp && (at_home_[s] == kNoOp || step_.division.device))
      room.push_back(last_drop_[stay.block]);
    const OpKind kind = step_.division.device ? OpKind::upload : OpKind::gather;
    came_[s] = add({.kind = kind,
                    .block = stay.block,
                    .lane = step_.division.device ? Lane::upload : Lane::net,
                    .after = std::move(room)});
  }

  // What was dropped when that turn ended makes room.
  std::vector<OpId> room_after(OpId op) const {
    return op == kNoOp ? std::vector<OpId>{} : std::vector<OpId>{last_on_compute_};
  }

  void drop(size_t s) {
    Op op{.kind = OpKind::drop, .block = stays_[s].block, .after = {}};
    for (OpId use : stays_[s].uses) op.after.push_back(place_[use]);
    last_drop_[op.block] = last_on_compute_ = add(std::move(op));
  }

  void copy(OpId old) {
    Op op = step_.ops[old];
    const bool spilled = op.block != kNoBlock && step_.placed(op.block) != Placement::memory;
    if (op.kind == OpKind::update && spilled) return;  // the next step's renew makes it
    const std::vector<BlockId> adds = passing_adds(step_, op);
    for (BlockId block : adds)
      if (cleared_[block] == kNoOp) clear(block);
    for (OpId& after : op.after) after = place_[after];
    for (BlockId block : coming_needs(step_, op)) op.after.push_back(came_[stay_at(block, old)]);
    for (BlockId block : adds) op.after.push_back(cleared_[block]);
    // Of a block whose moments are away renew leaves an empty gradient.
    if (op.kind == OpKind::backward && !step_.blocks[op.block].backward_uses_parameters && spilled &&
        step_.placed(op.block) == Placement::moments_away)
      op.after.push_back(came_[first_stay(op.block)]);
    const bool brings_sum = op.kind == OpKind::reduce || op.kind == OpKind::download;
    if (brings_sum && spilled && !step_.gradient_stays(op.block) && step_.placed(op.block) == Placement::moments_away)
      op.after.push_back(renewed_[op.block]);  // which takes the sum of the step before
    // At most two of the host's gradients wait for the disk.
    if (op.kind == OpKind::download && step_.placed(op.block) == Placement::away && stows_.size() >= 2)
      op.after.push_back(stows_[stows_.size() - 2]);
    const OpKind kind = op.kind;
    const BlockId block = op.block;
    place_[old] = add(std::move(op));
    if (step_.ops[old].lane == Lane::compute) last_on_compute_ = place_[old];
    if (kind == OpKind::norm && step_.placed(block) == Placement::away)
      stow(block, place_[old]);
    const bool sums = kind == OpKind::reduce && step_.slices() && !step_.gradient_stays(block);
    if (sums || kind == OpKind::download) gone_.push_back(place_[old]);
  }

  // At most two gradients at a time: the one that is made and the one that goes out.
  void clear(BlockId block) {
    Op op{.kind = OpKind::clear, .block = block, .after = {}};
    // After renew, which reads the gradient of the step before.
    if (step_.placed(block) != Placement::memory) op.after.push_back(renewed_[block]);
    if (gone_.size() >= 2) op.after.push_back(gone_[gone_.size() - 2]);
    cleared_[block] = last_on_compute_ = add(std::move(op));
  }

  void stow(BlockId block, OpId norm) {
    const OpId op = add({.kind = OpKind::stow, .block = block, .lane = Lane::write, .after = {norm}});
    stows_.push_back(op);
    if (!step_.home_is_apart()) gone_.push_back(op);  // else reduce or download frees it
  }

  size_t first_stay(BlockId block) const {
    for (size_t s = 0; s < stays_.size(); s++)
      if (stays_[s].block == block) return s;
    MEGALITH_ASSERT(false, "{} is never used", step_.blocks[block].name);
    return 0;
  }

  size_t stay_at(BlockId block, OpId op) const {
    for (size_t s = 0; s < stays_.size(); s++)
      if (stays_[s].block == block && stays_[s].uses.front() <= op && op <= stays_[s].uses.back()) return s;
    MEGALITH_ASSERT(false, "{} is not in memory for op {}", step_.blocks[block].name, op);
    return 0;
  }

  Schedule step_;
  const int32_t window_, ahead_;
  std::vector<Stay> stays_;             // by first turn
  std::vector<OpId> turn_ends_;         // by turn: its last op, before the pass
  std::vector<Op> ops_;                 // the result's
  std::vector<OpId> place_;             // by op before the pass: where it stands now
  std::vector<OpId> came_;              // by stay: its last op, renew, fetch, gather or upload
  std::vector<OpId> at_home_;           // by stay: renew or fetch; kNoOp: it was there, or has yet to come
  std::vector<OpId> cleared_, renewed_, last_drop_;  // by block
  std::vector<OpId> gone_;              // ops that free the gradients that do not stay
  std::vector<OpId> stows_;
  OpId last_on_compute_ = kNoOp;
};

}  // namespace

Schedule with_residency(Schedule step, std::vector<Placement> placement, int32_t window, int32_t ahead) {
  MEGALITH_ASSERT(window >= 1 && step.placement.empty() && (ahead == 0 || step.division.device));
  MEGALITH_ASSERT(placement.empty() || placement.size() == step.blocks.size());
  for (const Op& op : step.ops)
    MEGALITH_ASSERT(op.kind != OpKind::save, "saves are placed after spilling: they follow renew");
  const bool all_stay = std::all_of(placement.begin(), placement.end(), [](Placement p) { return p == Placement::memory; });
  if (all_stay && !step.home_is_apart()) return step;
  if (!all_stay) step.placement = std::move(placement);
  return Resident(std::move(step), window, ahead).run();
}

Schedule renew_only(std::vector<BlockFacts> blocks, std::vector<Placement> placement, Division division) {
  Schedule step;
  step.blocks = std::move(blocks);
  step.placement = std::move(placement);
  step.division = std::move(division);
  step.micros = 0;
  step.training = false;
  for (BlockId block = 0; block < static_cast<BlockId>(step.blocks.size()); block++) {
    if (step.placed(block) == Placement::memory || !step.holds(block)) continue;
    step.ops.push_back({.kind = OpKind::renew, .block = block, .lane = Lane::read, .after = {}});
    // Before the next one comes in.
    const auto renewed = static_cast<OpId>(step.ops.size()) - 1;
    if (step.placed(block) == Placement::away)
      step.ops.push_back({.kind = OpKind::drop, .block = block, .lane = Lane::read, .after = {renewed}});
  }
  return step;
}

int64_t copied_bytes(const Schedule& schedule, const Op& op) {
  if (!schedule.division.device || op.block == kNoBlock) return 0;
  const BlockFacts& block = schedule.blocks[op.block];
  switch (op.kind) {
    case OpKind::upload: return block.compute_copy_bytes > 0 ? block.compute_copy_bytes : kStateBytes * block.parameters;
    case OpKind::download: return kStateBytes * block.parameters;
    case OpKind::park:
    case OpKind::unpark: return schedule.blocks[op.block - 1].output_bytes;
    default: return 0;
  }
}

DiskTraffic disk_traffic(const Schedule& schedule, const Op& op) {
  const bool parks = op.kind == OpKind::park || op.kind == OpKind::unpark;
  if (parks && schedule.division.device) return {};  // in the host's memory
  if (op.kind == OpKind::park) return {0, schedule.blocks[op.block - 1].output_bytes};
  if (op.kind == OpKind::unpark) return {schedule.blocks[op.block - 1].output_bytes, 0};
  if (op.block == kNoBlock || schedule.placed(op.block) == Placement::memory) return {};
  const BlockFacts& block = schedule.blocks[op.block];
  const bool away = schedule.placed(op.block) == Placement::away;
  const int64_t values = kStateBytes * schedule.slice_elements(op.block);
  const int64_t state = block.optimizer_streams ? schedule.optimizer_slice_bytes(op.block) : 0;
  switch (op.kind) {
    case OpKind::renew: return away ? DiskTraffic{2 * values + state, values + state} : DiskTraffic{state, state};
    case OpKind::fetch: return {values, 0};
    case OpKind::stow: return {0, values};
    case OpKind::save: return {(away ? values : 0) + state, 0};
    default: return {};
  }
}

DiskTraffic disk_traffic(const Schedule& schedule) {
  DiskTraffic sum;
  for (const Op& op : schedule.ops) {
    const DiskTraffic one = disk_traffic(schedule, op);
    sum.read += one.read;
    sum.written += one.written;
  }
  return sum;
}

}  // namespace megalith

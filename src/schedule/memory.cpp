#include "schedule/memory.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "schedule/effects.h"

namespace megalith {
namespace {

constexpr int64_t kFloatBytes = 4;  // master parameters and gradients are float32 in every precision

struct Amount {
  MemoryKind kind = MemoryKind::activations;
  int64_t bytes = 0;
};

// Parameters as blocks compute with them. In 16 bits the float32 master of a spilled block is never whole in memory.
int64_t computing_bytes(const BlockFacts& block) {
  return block.compute_copy_bytes > 0 ? block.compute_copy_bytes : kFloatBytes * block.parameters;
}

// What a thing occupies while it is there; nothing for what is resident or too small to count.
Amount amount(const Schedule& schedule, const Effect& effect) {
  switch (effect.thing) {
    case Thing::activation:
    case Thing::output_gradient: return {MemoryKind::activations, schedule.blocks[effect.block].output_bytes};
    case Thing::saved: return {MemoryKind::saved, schedule.blocks[effect.block].saved_bytes};
    case Thing::parameters:
      if (schedule.placed(effect.block) != Placement::away) return {};
      return {MemoryKind::parameters, computing_bytes(schedule.blocks[effect.block])};
    case Thing::gradient:
      if (schedule.placed(effect.block) != Placement::away) return {};
      return {MemoryKind::gradients, kFloatBytes * schedule.blocks[effect.block].parameters};
    case Thing::aside: return {MemoryKind::aside, schedule.blocks[effect.block].aside_bytes};
    default: return {};
  }
}

int64_t workspace(const Schedule& schedule, const Op& op) {
  switch (op.kind) {
    case OpKind::forward:
      // What is not kept is there all the same while the op runs.
      if (schedule.training && schedule.keeps(op.block) != Keep::all)
        return schedule.blocks[op.block].workspace_bytes + schedule.blocks[op.block].saved_bytes;
      [[fallthrough]];
    case OpKind::loss:
    case OpKind::recompute:
    case OpKind::backward: return schedule.blocks[op.block].workspace_bytes;
    case OpKind::renew:
    case OpKind::fetch: return schedule.blocks[op.block].stream_bytes;
    case OpKind::save:
      return schedule.blocks[op.block].save_workspace_bytes +
             (schedule.placed(op.block) == Placement::memory ? 0 : schedule.blocks[op.block].stream_bytes);
    default: return 0;
  }
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
    case MemoryKind::aside: return "gradients kept aside";
    case MemoryKind::workspace: return "workspace";
    case MemoryKind::staging: return "staging";
  }
  return "unknown kind";
}

int64_t MemoryUse::total() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

MemoryUse resident(const Schedule& schedule) {
  MemoryUse use;
  for (size_t b = 0; b < schedule.blocks.size(); b++) {
    const BlockFacts& block = schedule.blocks[b];
    const Placement placed = schedule.placed(static_cast<BlockId>(b));
    if (placed == Placement::memory || !block.optimizer_streams) use[MemoryKind::optimizer] += block.optimizer_bytes;
    if (placed == Placement::away) continue;
    use[MemoryKind::parameters] += block.parameters * kFloatBytes + block.compute_copy_bytes;
    if (schedule.training) use[MemoryKind::gradients] += block.parameters * kFloatBytes;
  }
  return use;
}

MemoryLedger::MemoryLedger(const Schedule& schedule)
    : schedule_(schedule), now_(resident(schedule)), peak_(now_) {}

void MemoryLedger::start(OpId op) {
  for (const Effect& effect : effects(schedule_, schedule_.ops[op])) {
    if (effect.touch != Touch::makes) continue;
    const Amount it = amount(schedule_, effect);
    now_[it.kind] += it.bytes;
  }
  now_[workspace_kind(schedule_.ops[op])] += workspace(schedule_, schedule_.ops[op]);
  if (now_.total() <= peak_.total()) return;
  peak_ = now_;
  peak_op_ = op;
}

void MemoryLedger::finish(OpId op) {
  for (const Effect& effect : effects(schedule_, schedule_.ops[op])) {
    if (effect.touch != Touch::takes) continue;
    const Amount it = amount(schedule_, effect);
    now_[it.kind] -= it.bytes;
  }
  now_[workspace_kind(schedule_.ops[op])] -= workspace(schedule_, schedule_.ops[op]);
}

MemoryUse memory_in_order(const Schedule& schedule) {
  MemoryLedger ledger(schedule);
  for (OpId op = 0; op < static_cast<OpId>(schedule.ops.size()); op++) {
    ledger.start(op);
    ledger.finish(op);
  }
  return ledger.peak();
}

MemoryBound memory_bound(const Schedule& schedule, const Order& order) {
  MEGALITH_ASSERT(order.circle().empty());
  struct Life {
    int64_t bytes = 0;
    OpId maker = kNoOp, taker = kNoOp;
  };
  std::vector<Life> lives;                                        // a thing may have several, one after another
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> current(thing_count(schedule), kNone);  // by thing, into lives
  for (OpId op : order.sequence()) {
    for (const Effect& effect : effects(schedule, schedule.ops[op])) {
      size_t& life = current[thing_index(schedule, effect)];
      if (effect.touch == Touch::makes) {
        life = lives.size();
        lives.push_back({amount(schedule, effect).bytes, op, kNoOp});
      }
      if (effect.touch == Touch::takes && life != kNone) lives[life].taker = op;
    }
  }
  std::array<int64_t, kLanes> most_workspace{};  // of one op of the lane
  for (const Op& op : schedule.ops) {
    int64_t& most = most_workspace[static_cast<size_t>(op.lane)];
    most = std::max(most, workspace(schedule, op));
  }

  // Along one lane, a thing can be alive from the first op that is not sure to be done when its maker starts
  // to the last op that is not sure to start after its taker. Of the other lanes' workspaces take the
  // largest: they may all be at work.
  const int64_t base = resident(schedule).total();
  MemoryBound bound{base, kNoOp};
  for (size_t l = 0; l < kLanes; l++) {
    const Lane lane = static_cast<Lane>(l);
    const std::vector<OpId>& ops = order.lane(lane);
    std::vector<int64_t> change(ops.size() + 1, 0);
    for (const Life& life : lives) {
      if (life.bytes == 0) continue;
      const auto first = static_cast<size_t>(order.done_before(life.maker, lane));
      auto end = ops.end();
      if (life.taker != kNoOp) {
        end = std::partition_point(ops.begin(), ops.end(),
                                   [&](OpId op) { return !order.before(life.taker, op); });
      }
      change[first] += life.bytes;
      change[static_cast<size_t>(end - ops.begin())] -= life.bytes;
    }
    int64_t alive = base;
    for (size_t other = 0; other < kLanes; other++) alive += other == l ? 0 : most_workspace[other];
    for (size_t i = 0; i < ops.size(); i++) {
      alive += change[i];
      const int64_t bytes = alive + workspace(schedule, schedule.ops[ops[i]]);
      if (bytes > bound.bytes) bound = {bytes, ops[i]};
    }
  }
  return bound;
}

}  // namespace megalith

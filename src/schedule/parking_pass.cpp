#include "schedule/parking_pass.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

constexpr size_t kOnTheWay = 2;  // inputs that wait to go out, and that are back early

class Parking {
 public:
  explicit Parking(Schedule step) : step_(std::move(step)) {}

  Schedule run() {
    std::vector<Op> before = std::move(step_.ops);
    step_.ops.clear();
    find_unparks(before);
    for (OpId old = 0; old < static_cast<OpId>(before.size()); old++) {
      Op& op = before[static_cast<size_t>(old)];
      for (OpId& after : op.after) after = place_[static_cast<size_t>(after)];
      const bool parks = op.block != kNoBlock && step_.parks_input(op.block);
      if (parks && op.kind == OpKind::forward && parks_.size() >= kOnTheWay)
        op.after.push_back(parks_[parks_.size() - kOnTheWay]);
      if (parks && op.kind == OpKind::recompute) op.after.push_back(back_.at({op.block, op.micro}));
      const BlockId block = op.block;
      const MicroId micro = op.micro;
      const bool goes = parks && op.kind == OpKind::forward;
      place_.push_back(add(std::move(op)));
      if (goes) park(block, micro);
      for (const Key& key : unparks_[static_cast<size_t>(old)]) unpark(key, place_.back());
    }
    return std::move(step_);
  }

 private:
  using Key = std::pair<BlockId, MicroId>;

  // Which inputs may come back when which op (before the pass) is done: the recomputation two before their own, or the
  // last forward before it, whatever is later.
  void find_unparks(const std::vector<Op>& ops) {
    unparks_.resize(ops.size());
    std::vector<OpId> recomputes;
    OpId forward = kNoOp;
    for (OpId op = 0; op < static_cast<OpId>(ops.size()); op++) {
      const Op& it = ops[static_cast<size_t>(op)];
      if (it.kind == OpKind::forward) forward = op;
      if (it.kind != OpKind::recompute || !step_.parks_input(it.block)) continue;
      const OpId earlier = recomputes.size() < kOnTheWay ? kNoOp : recomputes[recomputes.size() - kOnTheWay];
      unparks_[static_cast<size_t>(std::max(forward, earlier))].push_back({it.block, it.micro});
      recomputes.push_back(op);
    }
  }

  OpId add(Op op) {
    step_.ops.push_back(std::move(op));
    return static_cast<OpId>(step_.ops.size()) - 1;
  }

  void park(BlockId block, MicroId micro) {
    parks_.push_back(add({.kind = OpKind::park,
                          .block = block,
                          .micro = micro,
                          .lane = step_.division.device ? Lane::download : Lane::write,
                          .after = {place_.back()}}));
    parked_[{block, micro}] = parks_.back();
  }

  void unpark(const Key& key, OpId after) {
    back_[key] = add({.kind = OpKind::unpark, .block = key.first, .micro = key.second,
                      .lane = step_.division.device ? Lane::upload : Lane::read,
                      .after = {parked_.at(key), after}});
  }

  Schedule step_;
  std::vector<std::vector<Key>> unparks_;  // by op before the pass
  std::vector<OpId> place_;                // by op before the pass: where it stands now
  std::vector<OpId> parks_;
  std::map<Key, OpId> parked_, back_;
};

}  // namespace

std::vector<int64_t> parked_bytes(const Schedule& step) {
  std::vector<int64_t> bytes(step.division.device ? 0 : step.parks.size());
  for (size_t block = 1; block < bytes.size(); block++)
    if (step.parks[block]) bytes[block] = step.blocks[block - 1].output_bytes;
  return bytes;
}

Schedule with_parking(Schedule step, std::vector<bool> parks) {
  if (std::find(parks.begin(), parks.end(), true) == parks.end()) return step;
  MEGALITH_ASSERT(step.training && step.parks.empty() && parks.size() == step.blocks.size());
  for (BlockId block = 0; block <= step.head(); block++)
    MEGALITH_ASSERT(!parks[static_cast<size_t>(block)] || step.keeps(block) == Keep::input, "{} has no input to park",
                    step.blocks[static_cast<size_t>(block)].name);
  step.parks = std::move(parks);
  return Parking(std::move(step)).run();
}

}  // namespace megalith

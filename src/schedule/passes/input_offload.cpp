#include "schedule/passes/input_offload.h"
#include "schedule/ops/all.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

constexpr size_t kOnTheWay = 2;  // maximum number of inputs that wait to be written, and that are reloaded early

class InputOffload {
 public:
  explicit InputOffload(Schedule step) : step_(std::move(step)) {}

  Schedule run() {
    std::vector<Op> before = std::move(step_.ops);
    step_.ops.clear();
    find_reloads(before);
    for (OpId old = 0; old < static_cast<OpId>(before.size()); old++) {
      Op& op = before[static_cast<size_t>(old)];
      for (OpId& after : op.after) after = place_[static_cast<size_t>(after)];
      const bool offloads = op.block != kNoBlock && step_.offloads_input(op.block);
      const bool goes = offloads && op.kind == ops::forward && step_.goes_back(op.micro);
      if (goes && offloads_.size() >= kOnTheWay)
        op.after.push_back(offloads_[offloads_.size() - kOnTheWay]);
      if (offloads && op.kind == ops::recompute) op.after.push_back(reloaded_.at({op.block, op.micro}));
      const BlockId block = op.block;
      const MicroId micro = op.micro;
      place_.push_back(add(std::move(op)));
      if (goes) offload(block, micro);
      for (const Key& key : reloads_[static_cast<size_t>(old)]) reload(key, place_.back());
    }
    return std::move(step_);
  }

 private:
  using Key = std::pair<BlockId, MicroId>;

  // For each op of the original step, finds the inputs that may be reloaded when the op is done. An input that recomputation
  // n needs may be reloaded when two ops are done: recomputation n - 2, and the last forward before recomputation n.
  void find_reloads(const std::vector<Op>& ops) {
    reloads_.resize(ops.size());
    std::vector<OpId> recomputes;
    OpId forward = kNoOp;
    for (OpId op = 0; op < static_cast<OpId>(ops.size()); op++) {
      const Op& it = ops[static_cast<size_t>(op)];
      if (it.kind == ops::forward) forward = op;
      if (it.kind != ops::recompute || !step_.offloads_input(it.block)) continue;
      const OpId earlier = recomputes.size() < kOnTheWay ? kNoOp : recomputes[recomputes.size() - kOnTheWay];
      reloads_[static_cast<size_t>(std::max(forward, earlier))].push_back({it.block, it.micro});
      recomputes.push_back(op);
    }
  }

  OpId add(Op op) {
    step_.ops.push_back(std::move(op));
    return static_cast<OpId>(step_.ops.size()) - 1;
  }

  void offload(BlockId block, MicroId micro) {
    offloads_.push_back(add({.kind = ops::offload_input,
                          .block = block,
                          .micro = micro,
                          .lane = step_.layout.device ? Lane::download : Lane::write,
                          .after = {place_.back()}}));
    offloaded_[{block, micro}] = offloads_.back();
  }

  void reload(const Key& key, OpId after) {
    reloaded_[key] = add({.kind = ops::reload_input, .block = key.first, .micro = key.second,
                      .lane = step_.layout.device ? Lane::upload : Lane::read,
                      .after = {offloaded_.at(key), after}});
  }

  Schedule step_;
  std::vector<std::vector<Key>> reloads_;  // by op of the original step
  std::vector<OpId> place_;                // by op of the original step: its new id
  std::vector<OpId> offloads_;
  std::map<Key, OpId> offloaded_, reloaded_;
};

}  // namespace

std::vector<int64_t> offloaded_input_bytes(const Schedule& step) {
  std::vector<int64_t> bytes(step.layout.device ? 0 : step.offloads.size());
  for (size_t block = 1; block < bytes.size(); block++)
    if (step.offloads[block]) bytes[block] = step.blocks[block - 1].output_bytes;
  return bytes;
}

Schedule with_input_offload(Schedule step, std::vector<bool> offloads) {
  if (std::find(offloads.begin(), offloads.end(), true) == offloads.end()) return step;
  MEGALITH_ASSERT(step.training && step.offloads.empty() && offloads.size() == step.blocks.size());
  for (BlockId block = 0; block <= step.head(); block++)
    MEGALITH_ASSERT(!offloads[static_cast<size_t>(block)] || step.keeps(block) == Keep::input, "{} keeps no input to offload",
                    step.blocks[static_cast<size_t>(block)].name);
  step.offloads = std::move(offloads);
  return InputOffload(std::move(step)).run();
}

}  // namespace megalith

#include "schedule/save_pass.h"

#include <numeric>
#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

// save of block b is op b, commit comes next.
std::vector<Op> save_ops(size_t blocks) {
  std::vector<Op> ops;
  for (size_t block = 0; block < blocks; block++) {
    ops.push_back(
        {.kind = OpKind::save, .block = static_cast<BlockId>(block), .lane = Lane::write, .after = {}});
  }
  std::vector<OpId> saves(blocks);
  std::iota(saves.begin(), saves.end(), 0);
  ops.push_back({.kind = OpKind::commit, .lane = Lane::write, .after = std::move(saves)});
  return ops;
}

}  // namespace

Schedule with_save(Schedule step) {
  MEGALITH_ASSERT(step.training, "only a training step overwrites what a save must keep");
  std::vector<Op> ops = save_ops(step.blocks.size());
  const OpId shift = static_cast<OpId>(ops.size());
  for (Op& op : step.ops) {
    MEGALITH_ASSERT(op.kind != OpKind::save && op.kind != OpKind::commit, "the step saves already");
    for (OpId& after : op.after) after += shift;
    if (op.kind == OpKind::update) op.after.push_back(op.block);
    ops.push_back(std::move(op));
  }
  step.ops = std::move(ops);
  return step;
}

Schedule save_only(std::vector<BlockFacts> blocks) {
  std::vector<Op> ops = save_ops(blocks.size());
  return {.blocks = std::move(blocks), .micros = 0, .training = false, .ops = std::move(ops)};
}

}  // namespace megalith

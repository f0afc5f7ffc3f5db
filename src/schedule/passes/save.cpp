#include "schedule/passes/save.h"
#include "schedule/ops/all.h"

#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

Op save_of(size_t block) {
  return {.kind = ops::save, .block = static_cast<BlockId>(block), .lane = Lane::write, .after = {}};
}

}  // namespace

Schedule with_save(Schedule step) {
  MEGALITH_ASSERT(step.training || step.micros == 0, "only a training step overwrites what a save must keep");
  step.saves = true;
  std::vector<Op> ops;
  std::vector<OpId> saves(step.blocks.size(), kNoOp), place;
  const auto add = [&](Op op) {
    ops.push_back(std::move(op));
    return static_cast<OpId>(ops.size()) - 1;
  };
  size_t left = 0;
  for (BlockId block = 0; block <= step.head(); block++) left += step.holds(block);
  const auto save = [&](size_t block, std::vector<OpId> after) {
    Op op = save_of(block);
    op.after = std::move(after);
    saves[block] = add(std::move(op));
    if (--left > 0) return;
    Op commit{.kind = ops::commit, .lane = Lane::write, .after = {}};
    for (OpId saved : saves)
      if (saved != kNoOp) commit.after.push_back(saved);
    add(std::move(commit));
  };
  // Blocks in memory are saved at once, before their update overwrites them. Spilled blocks are saved after load_updated has
  // applied the update that the previous step left pending.
  for (size_t block = 0; block < saves.size(); block++)
    if (step.holds(static_cast<BlockId>(block)) && step.placed(static_cast<BlockId>(block)) == Placement::in_memory)
      save(block, {});
  for (Op& op : step.ops) {
    MEGALITH_ASSERT(op.kind != ops::save && op.kind != ops::commit, "the step already saves");
    for (OpId& after : op.after) after = place[after];
    if (op.kind == ops::optimizer_step) op.after.push_back(saves[op.block]);
    const OpKind kind = op.kind;
    const BlockId block = op.block;
    place.push_back(add(std::move(op)));
    if (kind == ops::load_updated) save(static_cast<size_t>(block), {place.back()});
  }
  step.ops = std::move(ops);
  return step;
}

Schedule save_only(std::vector<BlockFacts> blocks, RankLayout layout) {
  Schedule nothing;
  nothing.blocks = std::move(blocks);
  nothing.layout = std::move(layout);
  nothing.micros = 0;
  nothing.training = false;
  return with_save(std::move(nothing));
}

}  // namespace megalith

#include "schedule/passes/training_step.h"

#include <utility>

#include "schedule/passes/step_writer.h"

namespace megalith {
namespace {

// Adds forward passes of micro-batches [first, end) through the blocks of this rank.
void forward_passes(StepWriter& step, MicroId first, MicroId end, ComputeOrder order) {
  const Schedule& it = step.step();
  const auto forward = [&](BlockId block, MicroId micro) {
    if (it.holds(block)) step.forward(block, micro);
  };
  if (order == ComputeOrder::by_micro) {
    for (MicroId micro = first; micro < end; micro++)
      for (BlockId block = 0; block <= it.head(); block++) forward(block, micro);
  } else {
    for (BlockId block = 0; block <= it.head(); block++)
      for (MicroId micro = first; micro < end; micro++) forward(block, micro);
  }
}

}  // namespace

Schedule training_step(std::vector<BlockFacts> blocks, int32_t micros, ComputeOrder order, std::vector<Keep> keep,
                       RankLayout layout) {
  const BlockId head = static_cast<BlockId>(blocks.size()) - 1;
  Schedule empty = empty_step(std::move(blocks), micros, true, std::move(keep), std::move(layout));
  // The first block of each block's chain. A chain is recomputed before backward of its last block.
  std::vector<BlockId> chain(static_cast<size_t>(head) + 1, kNoBlock);
  for (BlockId block = 0; block < head; block++)
    chain[block] = empty.keeps(block) == Keep::none ? chain[block - 1] : block;
  const auto ends_chain = [&](BlockId block) { return block + 1 == head || chain[block + 1] != chain[block]; };

  StepWriter step(std::move(empty));
  const auto holds = [&](BlockId block) { return step.step().holds(block); };
  forward_passes(step, micros, micros + step.step().first_pass, order);
  step.batch_loss();
  const int32_t together = order == ComputeOrder::by_block ? micros : 1;
  for (MicroId first = 0; first < micros; first += together) {
    const bool last = first + together == micros;
    const auto each = [&](auto work) {
      for (MicroId micro = first; micro < first + together; micro++) work(micro);
    };
    for (BlockId block = 0; block < head; block++)
      if (holds(block)) each([&](MicroId m) { step.forward(block, m); });
    if (holds(head)) each([&](MicroId m) { step.loss(m); });
    if (holds(head) && last) step.gradient_norm(head);
    for (BlockId block = head - 1; block >= 0; block--) {
      if (!holds(block)) continue;
      if (ends_chain(block) && chain[block] < block)
        for (BlockId b = chain[block]; b < block; b++) each([&](MicroId m) { step.recompute(b, m); });
      // One micro-batch after another, so that only the saved tensors of one exist at a time.
      each([&](MicroId m) {
        if (ends_chain(block)) step.recompute(block, m);
        step.backward(block, m);
      });
      if (last) step.gradient_norm(block);
    }
  }
  return step.finish();
}

Schedule evaluation_step(std::vector<BlockFacts> blocks, int32_t micros, ComputeOrder order, RankLayout layout) {
  StepWriter step(empty_step(std::move(blocks), micros, false, {}, std::move(layout)));
  forward_passes(step, 0, micros, order);
  step.batch_loss();
  return step.finish();
}

}  // namespace megalith

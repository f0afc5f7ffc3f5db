#include "schedule/base_pass.h"

#include <initializer_list>
#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

Schedule empty_step(std::vector<BlockFacts> blocks, int32_t micros, bool training) {
  MEGALITH_ASSERT(blocks.size() >= 2, "an embedding and a head at least, got {} blocks", blocks.size());
  MEGALITH_ASSERT(micros >= 1, "got {} micro-batches", micros);
  BlockId head = static_cast<BlockId>(blocks.size()) - 1;
  for (BlockId block = 0; block <= head; block++) {
    BlockId tied_to = blocks[block].tied_to;
    MEGALITH_ASSERT(tied_to == kNoBlock || (block == head && tied_to == 0),
                    "only the head can be tied, and to the embedding");
  }
  return {.blocks = std::move(blocks), .micros = micros, .training = training, .ops = {}};
}

OpId add(Schedule& schedule, Op op) {
  schedule.ops.push_back(std::move(op));
  return static_cast<OpId>(schedule.ops.size()) - 1;
}

// `after` without the ops that do not exist.
std::vector<OpId> those(std::initializer_list<OpId> ops) {
  std::vector<OpId> existing;
  for (OpId op : ops) {
    if (op != kNoOp) existing.push_back(op);
  }
  return existing;
}

}  // namespace

Schedule training_step(std::vector<BlockFacts> blocks, int32_t micros) {
  Schedule step = empty_step(std::move(blocks), micros, true);
  const BlockId head = static_cast<BlockId>(step.blocks.size()) - 1;
  const BlockId tied = step.blocks[head].tied_to;
  std::vector<OpId> added(head + 1, kNoOp);  // by block: the op that last added to its gradient
  std::vector<OpId> norms;
  auto norm = [&](BlockId block) {
    norms.push_back(add(step, {.kind = OpKind::norm, .block = block, .after = {added[block]}}));
  };

  const OpId count = add(step, {.kind = OpKind::count, .after = {}});
  for (MicroId micro = 0; micro < micros; micro++) {
    const bool last = micro == micros - 1;
    OpId previous = kNoOp;
    for (BlockId block = 0; block < head; block++) {
      previous = add(step, {.kind = OpKind::forward, .block = block, .micro = micro,
                            .after = those({previous})});
    }
    // Later losses come after the first, and so after count.
    previous = add(step, {.kind = OpKind::loss, .block = head, .micro = micro,
                          .after = those({previous, micro == 0 ? count : added[head]})});
    added[head] = previous;
    if (last) norm(head);
    for (BlockId block = head - 1; block >= 0; block--) {
      previous = add(step, {.kind = OpKind::backward, .block = block, .micro = micro,
                            .after = those({previous, added[block]})});
      added[block] = previous;
      if (last && block == tied) {
        added[block] = add(step, {.kind = OpKind::fold, .block = block, .after = {previous}});
      }
      if (last) norm(block);
    }
  }
  const OpId clip = add(step, {.kind = OpKind::clip, .after = norms});
  // On the compute lane: nothing else has work by now, and a second thread that computes in parallel regions makes the
  // OpenMP runtime keep more threads than there are cores, which puts them to sleep between regions (a layer took a
  // third longer in all of the step).
  for (BlockId block = 0; block <= head; block++) {
    add(step, {.kind = OpKind::update, .block = block, .after = {clip}});
  }
  return step;
}

Schedule evaluation_step(std::vector<BlockFacts> blocks, int32_t micros) {
  Schedule step = empty_step(std::move(blocks), micros, false);
  const BlockId head = static_cast<BlockId>(step.blocks.size()) - 1;
  // What the next loss comes after, besides its input.
  OpId loss = add(step, {.kind = OpKind::count, .after = {}});
  for (MicroId micro = 0; micro < micros; micro++) {
    OpId previous = kNoOp;
    for (BlockId block = 0; block <= head; block++) {
      OpId also = block == head ? loss : kNoOp;
      previous = add(step, {.kind = OpKind::forward, .block = block, .micro = micro,
                            .after = those({previous, also})});
    }
    loss = previous;
  }
  return step;
}

}  // namespace megalith

#include "schedule/base_pass.h"

#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

// Writes ops in the order in which they are computed, each after those whose results it takes.
class StepWriter {
 public:
  explicit StepWriter(Schedule step) : step_(std::move(step)), head_(static_cast<BlockId>(step_.blocks.size()) - 1) {
    const size_t visits = step_.blocks.size() * static_cast<size_t>(step_.micros);
    forward_.assign(visits, kNoOp);
    recomputed_.assign(visits, kNoOp);
    output_gradient_.assign(visits, kNoOp);
    added_.assign(step_.blocks.size(), kNoOp);
    count_ = add({.kind = OpKind::count, .after = {}});
  }

  void forward(BlockId block, MicroId micro) {
    std::vector<OpId> after;
    if (block > 0) after.push_back(forward_[at(block - 1, micro)]);
    if (block == head_) after.push_back(scored_ == kNoOp ? count_ : scored_);
    const OpId op = add({.kind = OpKind::forward, .block = block, .micro = micro, .after = std::move(after)});
    forward_[at(block, micro)] = op;
    if (block == head_) scored_ = op;
  }

  void loss(MicroId micro) {
    const OpId op = add({.kind = OpKind::loss, .block = head_, .micro = micro,
                         .after = {forward_[at(head_ - 1, micro)], scored_ == kNoOp ? count_ : scored_}});
    scored_ = added_[head_] = output_gradient_[at(head_ - 1, micro)] = op;
  }

  void recompute(BlockId block, MicroId micro) {
    if (step_.keeps(block) == Keep::all) return;
    const bool input_again = step_.keeps(block) == Keep::none;
    std::vector<OpId> after;
    if (input_again) after.push_back(recomputed_[at(block - 1, micro)]);
    // The activation that it makes again was the next block's, which took it.
    if (step_.output_again(block)) after.push_back(forward_[at(block + 1, micro)]);
    if (after.empty()) after.push_back(forward_[at(block, micro)]);
    recomputed_[at(block, micro)] = add({.kind = OpKind::recompute, .block = block, .micro = micro, .after = std::move(after)});
  }

  void backward(BlockId block, MicroId micro) {
    std::vector<OpId> after{output_gradient_[at(block, micro)]};
    if (added_[block] != kNoOp) after.push_back(added_[block]);
    // (Where the next block was recomputed after it, the order is given.)
    if (step_.keeps(block) != Keep::all && !step_.output_again(block)) after.push_back(recomputed_[at(block, micro)]);
    const OpId op = add({.kind = OpKind::backward, .block = block, .micro = micro, .after = std::move(after)});
    added_[block] = op;
    if (block > 0) output_gradient_[at(block - 1, micro)] = op;
  }

  // When all of the block's contributions are there.
  void norm(BlockId block) {
    if (block == step_.blocks[head_].tied_to)
      added_[block] = add({.kind = OpKind::fold, .block = block, .after = {added_[block]}});
    norms_.push_back(add({.kind = OpKind::norm, .block = block, .after = {added_[block]}}));
  }

  Schedule finish() {
    if (!step_.training) return std::move(step_);
    const OpId clip = add({.kind = OpKind::clip, .after = norms_});
    // On the compute lane: nothing else has work by now, and a second thread that computes in parallel regions makes
    // the OpenMP runtime keep more threads than there are cores, which puts them to sleep between regions (a layer
    // took a third longer in all of the step).
    for (BlockId block = 0; block <= head_; block++) add({.kind = OpKind::update, .block = block, .after = {clip}});
    return std::move(step_);
  }

 private:
  size_t at(BlockId block, MicroId micro) const {
    return static_cast<size_t>(block) * static_cast<size_t>(step_.micros) + static_cast<size_t>(micro);
  }
  OpId add(Op op) {
    step_.ops.push_back(std::move(op));
    return static_cast<OpId>(step_.ops.size()) - 1;
  }

  Schedule step_;
  const BlockId head_;
  // The ops that last made these; forward_, recomputed_ and output_gradient_ by block and micro-batch.
  std::vector<OpId> forward_, recomputed_, output_gradient_;
  std::vector<OpId> added_;  // by block: to its gradient
  OpId count_ = kNoOp, scored_ = kNoOp;
  std::vector<OpId> norms_;
};

Schedule empty_step(std::vector<BlockFacts> blocks, int32_t micros, bool training, std::vector<Keep> keep) {
  MEGALITH_ASSERT(blocks.size() >= 2, "an embedding and a head at least, got {} blocks", blocks.size());
  MEGALITH_ASSERT(micros >= 1, "got {} micro-batches", micros);
  const BlockId head = static_cast<BlockId>(blocks.size()) - 1;
  for (BlockId block = 0; block <= head; block++) {
    const BlockId tied_to = blocks[block].tied_to;
    MEGALITH_ASSERT(tied_to == kNoBlock || (block == head && tied_to == 0),
                    "only the head can be tied, and to the embedding");
  }
  if (!keep.empty()) {
    MEGALITH_ASSERT(keep.size() == blocks.size() && keep.front() == Keep::all && keep.back() == Keep::all,
                    "embedding and head keep all they need");
    for (BlockId block = 1; block < head; block++) {
      MEGALITH_ASSERT(keep[block] != Keep::attention || !blocks[block].packs_input,
                      "{} would make half of it again from rounded numbers", blocks[block].name);
      MEGALITH_ASSERT(keep[block] != Keep::none || keep[block - 1] == Keep::input || keep[block - 1] == Keep::none,
                      "nothing makes the input of {} again", blocks[block].name);
    }
  }
  Schedule step;
  step.blocks = std::move(blocks);
  step.keep = std::move(keep);
  step.micros = micros;
  step.training = training;
  return step;
}

}  // namespace

Schedule training_step(std::vector<BlockFacts> blocks, int32_t micros, ComputeOrder order, std::vector<Keep> keep) {
  const BlockId head = static_cast<BlockId>(blocks.size()) - 1;
  Schedule empty = empty_step(std::move(blocks), micros, true, std::move(keep));
  // A chain of blocks is made forward again when the last of them is due: where a block's chain begins.
  std::vector<BlockId> chain(static_cast<size_t>(head) + 1, kNoBlock);
  for (BlockId block = 0; block < head; block++)
    chain[block] = empty.keeps(block) == Keep::none ? chain[block - 1] : block;
  const auto ends_chain = [&](BlockId block) { return block + 1 == head || chain[block + 1] != chain[block]; };

  StepWriter step(std::move(empty));
  const int32_t together = order == ComputeOrder::by_block ? micros : 1;
  for (MicroId first = 0; first < micros; first += together) {
    const bool last = first + together == micros;
    const auto each = [&](auto work) {
      for (MicroId micro = first; micro < first + together; micro++) work(micro);
    };
    for (BlockId block = 0; block < head; block++) each([&](MicroId m) { step.forward(block, m); });
    each([&](MicroId m) { step.loss(m); });
    if (last) step.norm(head);
    for (BlockId block = head - 1; block >= 0; block--) {
      if (ends_chain(block) && chain[block] < block)
        for (BlockId b = chain[block]; b < block; b++) each([&](MicroId m) { step.recompute(b, m); });
      // Micro-batch by micro-batch: only one's saved tensors are there at a time.
      each([&](MicroId m) {
        if (ends_chain(block)) step.recompute(block, m);
        step.backward(block, m);
      });
      if (last) step.norm(block);
    }
  }
  return step.finish();
}

Schedule evaluation_step(std::vector<BlockFacts> blocks, int32_t micros, ComputeOrder order) {
  const BlockId head = static_cast<BlockId>(blocks.size()) - 1;
  StepWriter step(empty_step(std::move(blocks), micros, false, {}));
  if (order == ComputeOrder::by_micro) {
    for (MicroId micro = 0; micro < micros; micro++)
      for (BlockId block = 0; block <= head; block++) step.forward(block, micro);
  } else {
    for (BlockId block = 0; block <= head; block++)
      for (MicroId micro = 0; micro < micros; micro++) step.forward(block, micro);
  }
  return step.finish();
}

}  // namespace megalith

#include "schedule/passes/step_writer.h"
#include "schedule/ops/all.h"

#include <limits>
#include <utility>

#include "base/error.h"

namespace megalith {

StepWriter::StepWriter(Schedule empty) : step_(std::move(empty)), head_(step_.head()) {
  const size_t visits = step_.blocks.size() * static_cast<size_t>(step_.all_micros());
  forward_.assign(visits, kNoOp);
  recomputed_.assign(visits, kNoOp);
  output_gradient_.assign(visits, kNoOp);
  added_.assign(step_.blocks.size(), kNoOp);
  last_weight_gradient_.assign(step_.blocks.size(), kNoOp);
  backward_.assign(visits, kNoOp);
  counted_ = add({.kind = ops::count_targets, .after = {}});
  if (step_.table_is_remote()) sync_table();
}

OpId StepWriter::add(Op op) {
  const bool computes = op.lane == Lane::compute;
  step_.ops.push_back(std::move(op));
  const OpId id = static_cast<OpId>(step_.ops.size()) - 1;
  if (computes) before_last_ = std::exchange(last_, id);
  return id;
}

void StepWriter::sync_table() {
  const BlockId table = step_.tied_table();
  if (step_.holds(table)) synced_ = add({.kind = ops::sync_tied_table, .block = table, .lane = Lane::send, .after = {}});
  if (!step_.borrows(table)) return;
  synced_ = add({.kind = ops::sync_tied_table, .block = table, .lane = Lane::net, .after = {}});
  if (step_.training) zeroed_ = add({.kind = ops::zero_gradient, .block = table, .after = {}});
}

// A received activation may wait while one other op is computed, not longer. This bounds memory.
std::vector<OpId> StepWriter::one_ahead() const {
  return before_last_ == kNoOp ? std::vector<OpId>{} : std::vector<OpId>{before_last_};
}

void StepWriter::receive_input(BlockId block, MicroId micro) {
  if (block == 0 || step_.holds(block - 1)) return;
  forward_[at(block - 1, micro)] = add(
      {.kind = ops::receive_activation, .block = block - 1, .micro = micro, .lane = Lane::net, .after = one_ahead()});
}

void StepWriter::send(OpKind kind, BlockId block, MicroId micro, OpId made) {
  Op op{.kind = kind, .block = block, .micro = micro, .lane = Lane::send, .after = {made}};
  if (receiver_time_) held_[{receiver_time_(kind, block, micro), block, micro}] = std::move(op);
  else add(std::move(op));
}

void StepWriter::send_due(double now) {
  while (!held_.empty() && std::get<0>(held_.begin()->first) <= now) {
    add(std::move(held_.begin()->second));
    held_.erase(held_.begin());
  }
}

void StepWriter::forward(BlockId block, MicroId micro) {
  receive_input(block, micro);
  std::vector<OpId> after;
  if (block > 0) after.push_back(forward_[at(block - 1, micro)]);
  // Without this, nothing on this rank would wait for the first pass if another rank has the head.
  if (step_.first_pass > 0 && step_.goes_back(micro)) after.push_back(forward_[at(block, step_.first_pass + micro)]);
  if (block == head_ && !step_.scores_batch()) {
    after.push_back(scored_ == kNoOp ? counted_ : scored_);
    if (step_.borrows(step_.tied_table())) after.push_back(synced_);
  }
  const OpId op = add({.kind = ops::forward, .block = block, .micro = micro, .after = std::move(after)});
  forward_[at(block, micro)] = op;
  if (block == head_ && !step_.scores_batch()) scored_ = op;
  if (block < head_ && !step_.holds(block + 1))
    send(ops::send_activation, block, micro, op);
}

void StepWriter::loss(MicroId micro) {
  receive_input(head_, micro);
  Op op{.kind = ops::loss, .block = head_, .micro = micro,
        .after = {forward_[at(head_ - 1, micro)], scored_ == kNoOp ? counted_ : scored_}};
  if (step_.borrows(step_.tied_table())) {
    op.after.push_back(synced_);
    op.after.push_back(zeroed_);
  }
  const OpId id = add(std::move(op));
  scored_ = added_[head_] = output_gradient_[at(head_ - 1, micro)] = id;
  if (!step_.holds(head_ - 1))
    send(ops::send_output_gradient, head_ - 1, micro, id);
}

void StepWriter::batch_loss() {
  if (!step_.scores_batch() || !step_.holds(head_)) return;
  Op op{.kind = ops::batch_loss, .block = head_, .after = {counted_}};
  for (MicroId micro = 0; micro < step_.micros; micro++)
    op.after.push_back(forward_[at(head_, step_.first_pass + micro)]);
  scored_ = add(std::move(op));
}

void StepWriter::recompute(BlockId block, MicroId micro) {
  if (step_.keeps(block) == Keep::all) return;
  const bool input_again = step_.keeps(block) == Keep::none;
  std::vector<OpId> after;
  if (input_again) after.push_back(recomputed_[at(block - 1, micro)]);
  // This recomputation computes its output again. The next block's forward consumes the first copy, so that forward must run
  // before.
  if (step_.output_again(block)) after.push_back(forward_[at(block + 1, micro)]);
  if (after.empty()) after.push_back(forward_[at(block, micro)]);
  recomputed_[at(block, micro)] =
      add({.kind = ops::recompute, .block = block, .micro = micro, .after = std::move(after)});
}

void StepWriter::backward(BlockId block, MicroId micro) {
  if (!step_.holds(block + 1))
    output_gradient_[at(block, micro)] = add(
        {.kind = ops::receive_output_gradient, .block = block, .micro = micro, .lane = Lane::net, .after = one_ahead()});
  std::vector<OpId> after{output_gradient_[at(block, micro)]};
  // A received gradient does not imply that forward on this rank is done.
  if (!step_.holds(block + 1) && step_.keeps(block) == Keep::all) after.push_back(forward_[at(block, micro)]);
  if (added_[block] != kNoOp) after.push_back(added_[block]);
  // If the next block was recomputed from this one, the order follows from that.
  if (step_.keeps(block) != Keep::all && !step_.output_again(block)) after.push_back(recomputed_[at(block, micro)]);
  const OpId op = add({.kind = ops::backward, .block = block, .micro = micro, .after = std::move(after)});
  added_[block] = backward_[at(block, micro)] = op;
  if (block == 0) return;
  output_gradient_[at(block - 1, micro)] = op;
  if (!step_.holds(block - 1))
    send(ops::send_output_gradient, block - 1, micro, op);
}

void StepWriter::weight_gradient(BlockId block, MicroId micro) {
  if (!step_.defers(block)) return;
  std::vector<OpId> after{backward_[at(block, micro)]};
  if (last_weight_gradient_[block] != kNoOp) after.push_back(last_weight_gradient_[block]);
  last_weight_gradient_[block] = add({.kind = ops::weight_gradient, .block = block, .micro = micro, .after = std::move(after)});
}

void StepWriter::gradient_norm(BlockId block) {
  const BlockId table = step_.tied_table();
  if (last_weight_gradient_[block] != kNoOp) added_[block] = last_weight_gradient_[block];  // the last contribution
  if (block == head_ && step_.borrows(table)) add({.kind = ops::evict, .block = table, .after = {scored_}});
  if (block == table) {
    if (step_.table_is_remote())
      added_[block] = add({.kind = ops::sync_tied_gradient, .block = table, .lane = Lane::net, .after = {added_[block], synced_}});
    added_[block] = add({.kind = ops::embedding_gradient, .block = block, .after = {added_[block]}});
  }
  // As soon as the gradient is complete, it is summed over the ranks or downloaded from the device, while other gradients
  // are still computed. Its norm runs on the same lane, so that the compute lane does not wait.
  Lane lane = Lane::compute;
  if (step_.layout.sizes().reduces()) {
    lane = Lane::net;
    added_[block] = add({.kind = ops::reduce_gradient, .block = block, .lane = lane, .after = {added_[block]}});
  }
  if (step_.layout.device) {
    lane = Lane::download;
    added_[block] = add({.kind = ops::download, .block = block, .lane = lane, .after = {added_[block]}});
  }
  norms_.push_back(add({.kind = ops::gradient_norm, .block = block, .lane = lane, .after = {added_[block]}}));
}

void StepWriter::forward_through(BlockId first, BlockId last, MicroId micro) {
  for (BlockId block = first; block <= last; block++) {
    if (block == head_ && step_.goes_back(micro)) loss(micro);
    else forward(block, micro);
  }
}

void StepWriter::backward_through(BlockId first, BlockId last, MicroId micro, bool last_micro, Weights weights) {
  // A chain of blocks is recomputed before backward of its last block.
  const auto chain_begin = [&](BlockId block) {
    while (step_.keeps(block) == Keep::none) block--;
    return block;
  };
  for (BlockId block = last; block >= first; block--) {
    if (block < head_) {
      if (block == last || step_.keeps(block + 1) != Keep::none)
        for (BlockId b = chain_begin(block); b <= block; b++) recompute(b, micro);
      backward(block, micro);
    }
    if (step_.defers(block) && weights == Weights::later) continue;
    weight_gradient(block, micro);
    if (last_micro) gradient_norm(block);
  }
}

void StepWriter::weight_gradients_through(BlockId first, BlockId last, MicroId micro, bool last_micro) {
  for (BlockId block = last; block >= first; block--) {
    if (!step_.defers(block)) continue;
    weight_gradient(block, micro);
    if (last_micro) gradient_norm(block);
  }
}

Schedule StepWriter::finish() {
  send_due(std::numeric_limits<double>::infinity());
  std::vector<OpId> sums = norms_;
  if (!step_.training && scored_ != kNoOp) sums.push_back(scored_);  // in training, the head's norm follows it
  if (step_.borrows(step_.tied_table())) {
    // Sent after everything else, because the owner of the table receives it after its own backward.
    if (step_.training) add({.kind = ops::sync_tied_gradient, .block = step_.tied_table(), .lane = Lane::send, .after = {scored_}});
    else add({.kind = ops::evict, .block = step_.tied_table(), .after = {scored_}});
  }
  if (step_.layout.sizes().ranks() > 1) sums = {add({.kind = ops::all_reduce_totals, .after = std::move(sums)})};
  if (!step_.training) return std::move(step_);
  const OpId decision = add({.kind = ops::prepare_update, .after = std::move(sums)});
  // The optimizer runs on the compute lane, because the lane has no other work by now. A second thread with parallel regions
  // would be slower: the OpenMP runtime would keep more threads than cores, and they would sleep between regions. Then a
  // layer took a third longer in the whole step.
  for (BlockId block = 0; block <= head_; block++)
    if (step_.holds(block)) add({.kind = ops::optimizer_step, .block = block, .after = {decision}});
  return std::move(step_);
}

Schedule empty_step(std::vector<BlockFacts> blocks, int32_t micros, bool training, std::vector<Keep> keep,
                    RankLayout layout) {
  MEGALITH_ASSERT(blocks.size() >= 2, "expected at least an embedding and a head, got {} blocks", blocks.size());
  MEGALITH_ASSERT(micros >= 1, "got {} micro-batches", micros);
  Schedule step;
  step.blocks = std::move(blocks);
  step.keep = std::move(keep);
  step.micros = micros;
  step.training = training;
  step.first_pass = training && step.scores_batch() ? micros : 0;
  step.layout = std::move(layout);
  const BlockId head = step.head();
  MEGALITH_ASSERT(step.layout.stages.of.empty() || step.layout.stages.of.size() == step.blocks.size());
  MEGALITH_ASSERT(!step.scores_batch() || step.tied_table() == kNoBlock, "a head without logits needs no table");
  for (BlockId block = 0; block <= head; block++) {
    const BlockId tied_to = step.blocks[block].tied_to;
    MEGALITH_ASSERT(tied_to == kNoBlock || (block == head && tied_to == 0),
                    "only the head can be tied, and to the embedding");
  }
  if (step.keep.empty()) return step;
  MEGALITH_ASSERT(step.keep.size() == step.blocks.size() && step.keep.front() == Keep::all && step.keep.back() == Keep::all,
                  "embedding and head keep all they need");
  for (BlockId block = 1; block < head; block++) {
    const Keep before = step.keeps(block - 1);
    MEGALITH_ASSERT(step.keeps(block) != Keep::attention || !step.blocks[block].packs_input,
                    "{} would recompute half of the layer from rounded numbers", step.blocks[block].name);
    MEGALITH_ASSERT(step.keeps(block) != Keep::none ||
                        ((before == Keep::input || before == Keep::none) && step.stage(block) == step.stage(block - 1)),
                    "nothing recomputes the input of {}", step.blocks[block].name);
  }
  return step;
}

}  // namespace megalith

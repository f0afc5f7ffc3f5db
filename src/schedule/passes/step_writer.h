// Writes the ops of one rank's step in the order in which they are computed. Each op waits for the ops whose results it
// uses. The writer also adds the receives of what a rank does not have, and the sends of what the next rank needs. So an
// order of a step only says when each block computes each micro-batch.
#pragma once
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "schedule/schedule.h"

namespace megalith {

class StepWriter {
 public:
  // `empty`: a step without ops.
  explicit StepWriter(Schedule empty);

  const Schedule& step() const { return step_; }

  // These add the ops of a block that this rank holds.
  void forward(BlockId block, MicroId micro);
  void loss(MicroId micro);  // for the head
  // Call it after the first pass, or after the only pass of a validation. Adds nothing if the loss is a sum over
  // micro-batches, or if another rank has the head.
  void batch_loss();
  void recompute(BlockId block, MicroId micro);  // adds nothing if the block keeps all
  void backward(BlockId block, MicroId micro);
  void weight_gradient(BlockId block, MicroId micro);  // adds nothing if the block's backward defers nothing
  void gradient_norm(BlockId block);  // call it after all contributions to the block's gradient

  // Adds the forward pass of a micro-batch through blocks `first` to `last` of this rank. In training, the head's op is
  // `loss`.
  void forward_through(BlockId first, BlockId last, MicroId micro);
  // Adds the backward pass, with the recomputation of chains of layers. With `last_micro`, gradient norms follow. With
  // Weights::later, weight_gradients_through must add the weight gradients that blocks defer.
  enum class Weights : uint8_t { now, later };
  void backward_through(BlockId first, BlockId last, MicroId micro, bool last_micro, Weights weights = Weights::now);
  void weight_gradients_through(BlockId first, BlockId last, MicroId micro, bool last_micro);

  // For steps in which a rank receives results in another order than the sender computes them. Each send is held back until
  // `send_due` reaches the time when the receiver takes the result. `time` returns this time. All ranks must use the same
  // clock. Otherwise a rank could wait for a send that is queued behind a send which is not received yet.
  using ReceiverTime = std::function<double(OpKind send, BlockId block, MicroId micro)>;
  void hold_sends(ReceiverTime time) { receiver_time_ = std::move(time); }
  void send_due(double now);

  Schedule finish();

 private:
  void send(OpKind kind, BlockId block, MicroId micro, OpId made);
  size_t at(BlockId block, MicroId micro) const {
    return static_cast<size_t>(block) * static_cast<size_t>(step_.all_micros()) + static_cast<size_t>(micro);
  }
  OpId add(Op op);
  void sync_table();
  void receive_input(BlockId block, MicroId micro);  // if another rank has the previous block
  std::vector<OpId> one_ahead() const;  // ops that a receive waits for, so that at most one received value waits

  Schedule step_;
  const BlockId head_;
  // The last op of each kind, by block and micro-batch; output_gradient_ has the ops that made the output gradients.
  std::vector<OpId> forward_, recomputed_, output_gradient_, backward_;
  std::vector<OpId> added_;    // by block: the last op that added to its gradient
  std::vector<OpId> last_weight_gradient_;  // by block; kNoOp if the block defers nothing
  OpId counted_ = kNoOp, scored_ = kNoOp;
  OpId last_ = kNoOp, before_last_ = kNoOp;  // the last two ops on the compute lane
  OpId synced_ = kNoOp, zeroed_ = kNoOp;      // ops of a table that another stage borrows
  std::vector<OpId> norms_;
  ReceiverTime receiver_time_;
  std::map<std::tuple<double, BlockId, MicroId>, Op> held_;  // by the receiver's time
};

// Returns a step without ops. Asserts that `blocks`, `keep` and `layout` fit each other.
Schedule empty_step(std::vector<BlockFacts> blocks, int32_t micros, bool training, std::vector<Keep> keep,
                    RankLayout layout);

}  // namespace megalith

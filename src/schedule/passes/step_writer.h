// Writes the ops of one rank's step in the order in which they are computed, each after those whose results it takes.
// What a rank does not have itself it receives, and what the next one needs it sends: whoever writes an order says
// only which block takes which micro-batch when.
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

  // Of blocks that this rank holds.
  void forward(BlockId block, MicroId micro);
  void loss(MicroId micro);  // of the head
  void recompute(BlockId block, MicroId micro);  // nothing where the block keeps all
  void backward(BlockId block, MicroId micro);
  void weight_gradient(BlockId block, MicroId micro);  // nothing where its backward defers nothing
  void gradient_norm(BlockId block);  // when all of the block's contributions are there

  // The whole way of a micro-batch through blocks `first` to `last` of this rank, `loss` for the head.
  void forward_through(BlockId first, BlockId last, MicroId micro);
  // And back, chains of layers that are made again included; `last_micro`: norms follow. What is deferred is made at once
  // with Weights::now, else by weight_gradients_through.
  enum class Weights : uint8_t { now, later };
  void backward_through(BlockId first, BlockId last, MicroId micro, bool last_micro, Weights weights = Weights::now);
  void weight_gradients_through(BlockId first, BlockId last, MicroId micro, bool last_micro);

  // Where ranks take what they are sent in another order than it is made: sends are held back until `send_due` says that
  // the receiver's time for them has come. `time` gives that time; all ranks must go by the same clock, so that nobody
  // waits for a send that stands behind one that nobody takes yet.
  using ReceiverTime = std::function<double(OpKind send, BlockId block, MicroId micro)>;
  void hold_sends(ReceiverTime time) { receiver_time_ = std::move(time); }
  void send_due(double now);

  Schedule finish();

 private:
  void send(OpKind kind, BlockId block, MicroId micro, OpId made);
  size_t at(BlockId block, MicroId micro) const {
    return static_cast<size_t>(block) * static_cast<size_t>(step_.micros) + static_cast<size_t>(micro);
  }
  OpId add(Op op);
  void sync_table();
  void receive_input(BlockId block, MicroId micro);  // input of a block whose neighbour before is elsewhere
  std::vector<OpId> one_ahead() const;  // what must be done before something is received: not more than one waits

  Schedule step_;
  const BlockId head_;
  // The ops that last made these, by block and micro-batch.
  std::vector<OpId> forward_, recomputed_, output_gradient_, backward_;
  std::vector<OpId> added_;    // by block: to its gradient
  std::vector<OpId> last_weight_gradient_;  // by block that defers its weight products
  OpId counted_ = kNoOp, scored_ = kNoOp;
  OpId last_ = kNoOp, before_last_ = kNoOp;  // on the compute lane
  OpId synced_ = kNoOp, zeroed_ = kNoOp;      // of a table that another stage borrows
  std::vector<OpId> norms_;
  ReceiverTime receiver_time_;
  std::map<std::tuple<double, BlockId, MicroId>, Op> held_;  // by the receiver's time
};

// A step without ops; asserts that blocks, what they keep and how they are divided fit each other.
Schedule empty_step(std::vector<BlockFacts> blocks, int32_t micros, bool training, std::vector<Keep> keep,
                    RankLayout layout);

}  // namespace megalith

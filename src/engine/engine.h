// Gives meaning to a schedule's ops: what each does to blocks, activations, gradients and state. It knows no
// technique: order, overlap and placement are the schedule's.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/batch.h"
#include "engine/model_state.h"
#include "engine/op_watch.h"
#include "engine/team.h"
#include "optim/loss_scale.h"
#include "schedule/lanes.h"
#include "schedule/schedule.h"

namespace megalith {

// Where the save ops of a schedule put the parts of a checkpoint. Called on the write lane. Must not throw for
// the disk's faults: training goes on without that checkpoint, and the sink tells its owner.
class PartSink {
 public:
  virtual ~PartSink() = default;
  enum class Kind { parameter, optimizer };
  virtual void write(Kind kind, const NamedPart& part) = 0;
  virtual void commit() = 0;
};

struct StepInput {
  const Batch* batch = nullptr;  // borrowed; of all ranks; null for a schedule without micro-batches
  int64_t step = 0;              // from 0: keys dropout
  double lr = 0;
  PartSink* sink = nullptr;      // borrowed; needed by schedules that save
  std::function<bool()> stop_requested = {};  // of this rank; asked once, at the end
  bool same_for_all = false;     // every rank of the data axis takes the whole batch; it counts once
};

struct StepOutcome {
  double loss = 0;               // mean over the targets, nats
  int64_t targets = 0;
  double gradient_norm = 0;      // before clipping
  bool skipped = false;          // loss or gradient not finite: nothing was updated
  double loss_scale = 1;
  bool stop = false;             // some rank was asked to stop
  RoutingRecord routing;         // of a model with experts, in training: of the whole step
  DiskUse disk;                  // of this rank
  std::vector<Span> spans;       // by op
};

class Engine {
 public:
  // `training` false: no gradients, no optimizer. Schedules must place blocks as `residence` does, and divide the model
  // as `division` does among the ranks of `team` (borrowed; null: there are no others).
  Engine(const ModelShape& shape, const TrainSettings& settings, uint64_t seed, bool training,
         const Residence& residence = {}, Team* team = nullptr, const Division& division = {});

  // From now on tells which op every lane is in; borrowed. A team's waits are told where its world observes the same.
  void watch(OpWatch* watch) { watch_ = watch; }

  // Runs a schedule of this model. Micro-batches are equal cuts of this rank's sequences of the batch.
  StepOutcome run(const Schedule& schedule, const StepInput& input);

  // Logits of the last position of every sequence, or of all positions. With a cache, `ids` continue it.
  at::Tensor logits(const std::vector<int64_t>& ids, int64_t sequences, KeyValueCache* cache, bool last_only);
  // Loss of every position of a batch (0 where there is no target), row by row.
  std::vector<float> losses(const Batch& batch);

  ModelState& model() { return model_; }
  const Optimizer& optimizer() const { return *optimizer_; }

  // Everything besides tensors that the next step depends on.
  struct Counters {
    int64_t updates = 0;         // made so far: skipped steps do not count
    LossScale::State loss_scale;
  };
  Counters counters() const { return counters_; }
  void restore(const Counters& counters) { counters_ = counters; }

 private:
  struct Run;  // one run's activations, tapes and sums
  void execute(Run& run, const Op& op);
  void forward(const Schedule& schedule, BlockId block, Run& run, MicroId micro);
  void recompute(const Schedule& schedule, BlockId block, Run& run, MicroId micro);
  void clip(Run& run);
  void save(BlockId block, PartSink& sink);
  void total(Run& run);
  std::vector<double> routing_numbers(const Run& run) const;
  void exchange(Run& run, const Op& op);  // with the stages before and behind
  Batch part_of(const StepInput& input) const;
  at::Tensor activation_of(const Pass& pass) const;  // room for what a block hands on
  Pass pass_for(const Batch& batch, int64_t step, bool training);
  at::Tensor forward_alone(const Pass& pass);  // all blocks but the head, without a schedule

  TrainSettings settings_;
  uint64_t seed_;
  Team* team_;  // null: this rank is alone
  std::unique_ptr<Optimizer> optimizer_;
  ModelState model_;
  OpWatch* watch_ = nullptr;
  Lanes lanes_;
  Counters counters_;
};

}  // namespace megalith

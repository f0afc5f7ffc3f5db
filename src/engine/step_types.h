// The input and the outcome of a step.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "data/batch.h"
#include "engine/tensor_piece.h"
#include "model/routing/record.h"
#include "optim/loss_scale.h"
#include "schedule/timeline.h"

namespace megalith {

// Receives the tensors of a checkpoint from the save ops of a schedule. Called on the write lane. Must not throw if the disk
// fails: training continues without that checkpoint, and the sink reports the fault to its owner.
class CheckpointSink {
 public:
  virtual ~CheckpointSink() = default;
  enum class Kind { parameter, optimizer };
  virtual void write(Kind kind, const TensorPiece& piece) = 0;
  virtual void commit() = 0;
};

struct StepInput {
  const Batch* batch = nullptr;    // borrowed; of all ranks; null for a schedule without micro-batches
  int64_t step = 0;                // from 0; dropout is a function of it
  double lr = 0;
  CheckpointSink* sink = nullptr;  // borrowed; needed by schedules that save
  std::function<bool()> stop_requested = {};  // of this rank; called once, at the end
  bool same_for_all = false;       // every rank of the data axis takes the whole batch; it counts once
};

// Traffic of the disk tier.
struct DiskUse {
  int64_t read = 0, written = 0;  // bytes
  int64_t experts_called = 0;     // experts loaded on demand, while a layer waited
  DiskUse operator-(const DiskUse& o) const {
    return {read - o.read, written - o.written, experts_called - o.experts_called};
  }
};

struct StepOutcome {
  double loss = 0;           // mean over the targets, nats
  int64_t targets = 0;
  double gradient_norm = 0;  // before clipping
  bool skipped = false;      // loss or gradient not finite: nothing was updated
  double loss_scale = 1;
  bool stop = false;         // at least one rank was asked to stop
  RoutingRecord routing;     // of the whole step; only for training a model with experts
  DiskUse disk;              // traffic of this rank
  std::vector<Span> spans;   // by op
};

// Everything besides tensors that the next step depends on.
struct StepCounters {
  int64_t updates = 0;  // number of updates so far; skipped steps do not count
  LossScale::State loss_scale;
};

}  // namespace megalith

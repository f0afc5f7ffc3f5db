// Runs schedules of a model. The schedule decides order, overlap and placement; the handlers in engine/ops/ decide what each
// op does. The engine itself knows no technique and no op.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/config.h"
#include "engine/step_types.h"
#include "engine/storage_options.h"
#include "schedule/observer.h"
#include "schedule/schedule.h"

namespace at {
class Tensor;
}

namespace megalith {

class BlockStore;
class KeyValueCache;
class Optimizer;
class StatePieces;
class ProcessGroups;
struct OpHandler;

class Engine {
 public:
  // `training` false: no gradients, no optimizer. Schedules must place blocks as `storage` does and divide the model as the
  // mesh of `groups` (borrowed; null: one rank) and `stages` do.
  Engine(const ModelShape& shape, const TrainSettings& settings, uint64_t seed, bool training,
         const StorageOptions& storage = {}, ProcessGroups* groups = nullptr, const StageMap& stages = {});
  ~Engine();

  // From now on reports the current op of every lane to the observer. Borrowed.
  void observe(StepObserver* observer);
  // Adds handlers of other ops, for tests. The table must outlive the engine.
  void add_handlers(std::span<const OpHandler> handlers);

  // Runs a schedule of this model. Micro-batches are equal cuts of this rank's sequences of the batch.
  StepOutcome run(const Schedule& schedule, const StepInput& input);

  // Logits of the last position of every sequence, or of all positions. With a cache, `ids` continue its sequences.
  at::Tensor logits(const std::vector<int64_t>& ids, int64_t sequences, KeyValueCache* cache, bool last_only);
  // Loss of every position of a batch (0 if it has no target), row by row.
  std::vector<float> losses(const Batch& batch);
  // The vector of every sequence, one after the other. Only with HeadKind::representation.
  std::vector<float> representations(const Batch& batch);

  const ModelShape& shape() const;
  StatePieces& state();              // parameters, gradients and optimizer state by name
  void clear_gradients();
  const BlockStore* store() const;   // null: nothing is on disk
  const Optimizer& optimizer() const;

  StepCounters counters() const;
  void restore(const StepCounters& counters);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace megalith

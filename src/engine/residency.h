// Moves the state of spilled blocks between memory and disk, and tracks their pending updates. The ops of the residency
// family call its functions. Also loads experts on demand: a layer knows which experts it needs only after its router ran.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/block_state.h"
#include "engine/step_types.h"
#include "engine/update_log.h"
#include "model/expert_loader.h"

namespace megalith {

// The experts that load_updated loads: only likely ones (the updates of the others stay pending), or all.
enum class LoadScope : uint8_t { likely_experts, all };

class Residency final : public ExpertLoader {
 public:
  // Borrows `model`, `optimizer` and the device. `optimizer` null: parameters only.
  Residency(BlockStates& model, const Optimizer* optimizer, const StorageOptions& storage);

  void load_updated(BlockId id, Lane lane, LoadScope scope);
  void load(BlockId id, Lane lane);
  void evict(BlockId id);
  void zero_gradient(BlockId id);
  void offload_gradient(BlockId id, Lane lane);
  // Write the input that a layer keeps to disk, and read it back.
  void offload_input(BlockId id, MicroId micro, Lane lane, const at::Tensor& input);
  void reload_input(BlockId id, MicroId micro, Lane lane, const at::Tensor& input);

  // Records an update of all spilled blocks, with the gradients of this step. The next load of a block applies it.
  void record_update(const Update& update);
  void discard_gradients();  // drops the gradients of a skipped step
  bool is_pending(BlockId id) const;

  // Null if all experts are always loaded with their layer.
  ExpertLoader* experts() { return loads_experts_ ? this : nullptr; }
  void load_experts(int64_t layer, std::span<const int64_t> begin) override;

  DiskUse disk_use() const;  // since the start
  BlockStore* store() const { return store_.get(); }  // null: nothing is spilled

 private:
  // The updates that a segment of a spilled block has applied.
  struct Progress {
    int64_t applied = 0;          // number of the first update that is pending; earlier ones are applied
    bool gradient_waits = false;  // its gradient waits for that update; false: its gradient is zero
    bool present = false;         // parameters are in memory and up to date
  };
  Progress& of(const SegmentState& segment) { return progress_[static_cast<size_t>(segment.stored)]; }
  const Progress& of(const SegmentState& segment) const { return progress_[static_cast<size_t>(segment.stored)]; }
  int64_t waiting(const SegmentState& segment) const { return log_.end() - of(segment).applied; }  // pending updates
  bool is_pending(const BlockState& state) const;
  bool is_due(const SegmentState& segment) const;
  void open_store(const StorageOptions& storage);
  void allocate_parameters(BlockState& state);
  // Loads the segments and applies their pending updates.
  void load_segments(BlockState& state, std::span<SegmentState* const> segments, Lane lane);
  void stream_updated(BlockState& state, std::span<SegmentState* const> segments, Lane lane);
  void load_whole_updated(BlockState& state, Lane lane);
  void read(BlockState& state, std::span<SegmentState* const> segments, Lane lane);
  void fill_computing(BlockState& state, const SegmentState& segment, int64_t begin, std::span<const float> values);
  void mark_updated(BlockState& state, SegmentState& segment);

  BlockStates& model_;
  const Optimizer* optimizer_;
  Device* device_;                     // borrowed; null: blocks compute in host memory
  std::unique_ptr<BlockStore> store_;
  UpdateLog log_;
  std::vector<Progress> progress_;     // by SegmentState::stored
  bool loads_experts_ = false;
  int64_t experts_called_ = 0;
};

}  // namespace megalith

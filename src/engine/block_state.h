// The buffers of a model on one rank. Each block has one flat buffer of parameters, one of gradients and one of optimizer
// state, in memory or on disk. The other files of engine/ move, exchange, update and save these buffers.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "engine/block_store.h"
#include "engine/device.h"
#include "engine/slot_format.h"
#include "engine/storage_options.h"
#include "model/block.h"
#include "optim/optimizer.h"
#include "schedule/home.h"

namespace megalith {

// How the state of all blocks is kept.
struct StateFormat {
  at::ScalarType compute_type = at::kFloat;  // the type that blocks compute in; master values are always float32
  Packing packing = Packing::fp32;           // of the state of an elementwise optimizer
  int slot_arrays = -1;  // flat arrays of optimizer state, each laid out like the parameters; -1: not elementwise
  bool training = false;
  bool elementwise() const { return slot_arrays >= 0; }
  bool packs() const { return packing != Packing::fp32; }
  bool wide() const { return compute_type == at::kFloat; }
};

at::ScalarType compute_type(Precision precision);

// A tensor of the optimizer state.
struct Slot {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // elements, inside the optimizer buffer of the segment
  int64_t size = 0;
};

// A part of a block that the same ranks hold: its dense parameters, or one expert. Each segment is sliced separately.
struct SegmentState {
  FlatRange flat;          // elements of the flat buffers of the block
  bool spread = false;     // an expert of a layer whose experts are spread over ranks
  FlatRange own, counted;  // the part that this rank updates; the part of `own` that this rank counts and saves
  // `values` is a view of `computing` if that is float32 and stays in memory. `gradient` is a view of `gradients` if that
  // stays. `values` is undefined while the block is on disk. A spilled block that computes in 16 bits never has `values`,
  // unless its master is separate.
  at::Tensor values;       // own range, float32 master
  at::Tensor gradient;     // own range, summed over all ranks that have the segment
  at::Tensor optimizer;    // own range, float32, or bytes if packed; undefined while it is on disk
  int64_t optimizer_size = 0;        // elements, of an optimizer that is not elementwise
  std::optional<SlotFormat> format;  // chunks of the own range; for an elementwise optimizer, the records of the slots
  BlockId stored = 0;                // index among all segments of the model, also on disk
  int64_t expert = -1;               // loaded only when a token chooses this expert; -1: always loaded
  bool chosen = true;                // false: an expert that no token chose since the block was loaded; norms skip it
};

struct BlockState {
  std::unique_ptr<Block> block;
  Home home;
  at::Tensor computing;  // the whole block, in the type and memory of the computation; undefined while not loaded
  at::Tensor gradients;  // the whole block, float32, in the memory of the computation; undefined without optimizer
  std::vector<SegmentState> segments;    // in order
  std::vector<ParameterFacts> facts;     // by parameter
  std::vector<std::vector<Slot>> slots;  // by parameter
  const BlockSpec& spec() const { return block->spec(); }
  const SegmentState& segment_of(const ParameterSpec& parameter) const;
  SegmentState& segment_of(const ParameterSpec& parameter);
  // Returns the part of a parameter that this rank updates.
  ParameterSlice slice(size_t parameter) const;
};

class BlockStates {
 public:
  // `optimizer` null: parameters only (generation, evaluation). It is used only in the constructor. `exchanges` are those of
  // this rank, borrowed; their mesh divides the model.
  BlockStates(const ModelShape& shape, Precision precision, const Optimizer* optimizer, const StorageOptions& storage,
              Packing packing, const Exchanges& exchanges, const StageMap& stages);

  size_t size() const { return blocks_.size(); }
  BlockState& at(BlockId id) { return blocks_[static_cast<size_t>(id)]; }
  const BlockState& at(BlockId id) const { return blocks_[static_cast<size_t>(id)]; }
  Block& block(BlockId id) { return *at(id).block; }
  EmbeddingBlock& embedding() { return static_cast<EmbeddingBlock&>(*blocks_.front().block); }
  HeadBlock& head() { return static_cast<HeadBlock&>(*blocks_.back().block); }
  auto begin() { return blocks_.begin(); }
  auto end() { return blocks_.end(); }
  size_t segments() const { return segments_; }  // of all blocks

  const ModelShape& shape() const { return shape_; }
  const StateFormat& format() const { return format_; }
  const RankLayout& layout() const { return layout_; }

  // Changes buffers of a block under a lock and binds the block to them. Any lane may call it, also at the same time for one
  // block: an op may offload its gradient while another op evicts its parameters.
  void rebind(BlockState& state, const std::function<void()>& change);
  // Converts the master values of a segment to the type of the computation.
  void copy_to_computing(BlockState& state, const SegmentState& segment);
  // Call after the float32 values in memory were written.
  void values_changed();

  // True if this rank counts and saves a parameter. Of the tensor ranks that hold all of it, only the first one does.
  bool counts(const ParameterSpec& parameter) const;
  bool first_of_replicas() const { return layout_.mesh.replica() == 0 && layout_.mesh.first(Axis::tensor); }

 private:
  void divide(BlockState& state);
  void lay_out_optimizer(BlockState& state, const Optimizer& optimizer);
  void allocate(BlockState& state);
  void bind(BlockState& state);

  ModelShape shape_;
  RankLayout layout_;
  StateFormat format_;
  BlockId segments_ = 0;  // numbered so far
  std::vector<BlockState> blocks_;
  std::mutex binding_;    // one for the model: binding the embedding ties the head again
};

// Returns an uninitialised flat buffer. A float32 buffer is aligned and padded for disk transfers.
at::Tensor flat_buffer(int64_t elements, at::ScalarType type);
// Zeroes a flat float32 buffer with all threads.
void zero(const at::Tensor& flat);
// Returns `size` elements that start at `offset`, or an empty span for an undefined tensor.
std::span<float> floats_of(const at::Tensor& flat, int64_t offset, int64_t size);

}  // namespace megalith

// Owns the bytes of a model: per block one flat buffer of parameters, gradients and optimizer state each, in memory
// or on disk.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "config/config.h"
#include "engine/block_store.h"
#include "engine/device.h"
#include "engine/state_layout.h"
#include "engine/update_log.h"
#include "model/block.h"
#include "optim/optimizer.h"

namespace megalith {

enum class PartType : uint8_t { f32, bf16, u8 };

// A tensor by name, or a piece of one: what checkpoints are made of.
struct NamedPart {
  std::string name;
  std::vector<int64_t> shape;  // of the whole tensor
  std::span<float> values;     // empty where the part is not in memory, or of another type
  int64_t begin = 0;           // first element of the piece
  PartType type = PartType::f32;
  std::span<std::byte> packed = {};  // the piece's elements where they are not float32
  std::span<std::byte> bytes() const { return type == PartType::f32 ? std::as_writable_bytes(values) : packed; }
};

// What is on disk, and where; and where blocks are computed. Empty: everything stays in memory.
struct Residence {
  std::vector<Placement> placement;  // by block
  std::filesystem::path spill;       // folder
  std::vector<int64_t> parked = {};  // by block: bytes of a micro-batch's input that offloads
  int32_t micros = 0;                // that park at the same time
  Staging staging = Staging::scarce; // of what streams
  Device* device = nullptr;          // borrowed; null: blocks are computed in the host's memory
};

// What one of several ranks has of a model.
struct ModelPart {
  Division division;
  int32_t replica = 0;  // which of division.sharding.replicas ranks it is,
  int32_t expert_replica = 0;  // and which of those that have the same experts
  Ranks ranks;          // with whom it shares the work inside blocks
};

// The ranks that hold the same blocks, and of these the ones that have the same experts: all where experts are not spread.
struct Replicas {
  Channel& all;
  Channel& of_experts;
};

// What went over the disk.
struct DiskUse {
  int64_t read = 0, written = 0;  // bytes
  int64_t experts_called = 0;     // that nobody foresaw: a layer waited for them
  DiskUse operator-(const DiskUse& o) const {
    return {read - o.read, written - o.written, experts_called - o.experts_called};
  }
};

class ModelState final : private ExpertShelf {
 public:
  // `optimizer` null: parameters only (generation, evaluation). `precision`: what blocks compute in; master
  // values are always float32. `packing`: how an elementwise optimizer's state is kept. `part`: what this rank has of it.
  // Borrows the optimizer.
  ModelState(const ModelShape& shape, Precision precision, const Optimizer* optimizer, const Residence& residence = {},
             Packing packing = Packing::fp32, const ModelPart& part = {});

  // Fresh weights: every element is a function of (seed, parameter, index). Empty optimizer state.
  void initialise(uint64_t seed);
  void empty_optimizer();

  size_t size() const { return blocks_.size(); }
  const ModelShape& shape() const { return shape_; }
  Block& block(BlockId id) { return *blocks_[static_cast<size_t>(id)].block; }
  EmbeddingBlock& embedding() { return static_cast<EmbeddingBlock&>(*blocks_.front().block); }
  HeadBlock& head() { return static_cast<HeadBlock&>(*blocks_.back().block); }
  Placement placement(BlockId id) const { return blocks_[static_cast<size_t>(id)].placement; }
  bool holds(BlockId id) const { return state_of(id).held; }
  bool slices() const { return part_.division.sharding.slices(); }
  bool parameters_stay(BlockId id) const { return state_of(id).parameters_stay; }

  // Views of what this rank has in memory, and the names and shapes of all; packed state has no views.
  std::vector<NamedPart> parameters(BlockId id);
  std::vector<NamedPart> gradients(BlockId id);
  std::vector<NamedPart> optimizer_state(BlockId id);
  int64_t optimizer_bytes(BlockId id) const;

  // Every piece of every part in order, wherever it is: to look at, or to be filled. Of what several ranks have, each
  // looks at pieces of its own, and all together at all; each fills all that it has. Packed numbers come as they are
  // kept, their scales as a part of their own (NAME.scale). Of a spilled block pieces are staging buffers; nothing may
  // be pending. `lane`: whose thread calls.
  using PieceWork = std::function<void(const NamedPart&)>;
  void read_parameters(BlockId id, Lane lane, const PieceWork& look);
  void read_optimizer(BlockId id, Lane lane, const PieceWork& look);
  void write_parameters(BlockId id, const PieceWork& fill);
  void write_optimizer(BlockId id, const PieceWork& fill);
  // Call when the float32 values in memory were written through parameters().
  void values_changed();

  // Sum over the block, fixed order; of what several ranks have, over the part that is this one's to count.
  double gradient_squares(BlockId id) const;
  void update(BlockId id, const Optimizer& optimizer, const Update& update);
  void clear_gradient(BlockId id);

  // Of spilled blocks: what the ops of the same names do. Of a block's experts `renew` brings in those that are likely to be
  // chosen; the others stay on the shelf, and their updates wait. `all`: nothing is left to be made.
  enum class Bring { likely, all };
  void renew(BlockId id, Lane lane, Bring bring);
  ExpertShelf* shelf() { return keeps_experts_ ? this : nullptr; }
  void fetch(BlockId id, Lane lane);
  void drop(BlockId id);
  void clear(BlockId id);
  void stow(BlockId id, Lane lane);
  // Of inputs that layers keep: what the ops of the same names do. What a device's input becomes in the host's memory is
  // the caller's to hold; on disk there is nothing to hold.
  at::Tensor park(BlockId id, MicroId micro, Lane lane, const at::Tensor& input);
  void unpark(BlockId id, MicroId micro, Lane lane, const at::Tensor& parked, const at::Tensor& input);
  // Of blocks that are computed on a device: what the ops of the same names do.
  bool on_device() const { return device_ != nullptr; }
  void upload(BlockId id);
  void download(BlockId id);
  // Of blocks that several ranks have: what the ops of the same names do. `tensor`: the ranks that share their insides
  // (null: none).
  void gather(BlockId id, const Replicas& replicas);
  void reduce(BlockId id, const Replicas& replicas, Channel* tensor);
  // A table that another rank owns, or lends: `peer` is the other's place on `pair`.
  void lend(BlockId id, Channel& pair, int peer);
  void collect(BlockId id, Channel& pair, int peer);
  // The update that all spilled blocks have yet to make, with the gradients of this step; their next coming makes it.
  void leave_pending(const Update& update);
  void forget_gradients();  // of a step that is skipped
  bool spills() const { return store_ != nullptr; }
  DiskUse disk_use() const;  // so far
  const BlockStore* store() const { return store_.get(); }

 private:
  struct Slot {
    std::string name;
    std::vector<int64_t> shape;
    int64_t offset = 0;  // elements, inside the part's optimizer buffer
    int64_t size = 0;
  };
  // What the same ranks have of a block: the state of every part is divided by itself.
  struct Part {
    FlatRange flat;                // elements of the block's flat buffers
    bool spread = false;
    FlatRange own, counted;        // of those: what this rank updates; what it counts and saves, a part of that
    // In float32 `values` lie within `computing` and `sum` within `gradients` wherever those stay.
    at::Tensor values;     // own range, float32 master; undefined while away and, in 16 bits, always then
    at::Tensor sum;        // own range of the gradient, summed over all ranks that have the part
    at::Tensor optimizer;  // own range, float32, or bytes where packed; undefined while it is on disk
    int64_t optimizer_size = 0;         // elements, of an optimizer that is not elementwise
    std::optional<StateLayout> layout;  // chunks of the own range; of an elementwise optimizer, the slots' records
    BlockId stored = 0;                 // its number on disk
    // Of a spilled block:
    int64_t expert = -1;          // may stay on the shelf while no token chooses this expert of those here; -1: never does
    int64_t made = 0;             // updates of the log before this one are in it
    bool gradient_waits = false;  // for the first one that is not: else its gradient is zero
    bool chosen = true;           // since its last renew
    bool present = false;         // parameters are in memory and up to date
  };
  struct State {
    std::unique_ptr<Block> block;
    Placement placement = Placement::in_memory;
    bool held = true;              // else another stage of the pipeline has it
    bool parameters_stay = true, gradient_stays = true;  // whole, from step to step
    at::Tensor
        computing;  // the whole block, in the type and at the place of the computation; undefined while it is elsewhere
    at::Tensor gradients;  // the whole block, float32, at the place of the computation; undefined without optimizer
    std::vector<Part> parts;                 // one after the other
    std::vector<ParameterFacts> facts;       // by parameter
    std::vector<std::vector<Slot>> slots;    // by parameter
  };
  static const Part& part_of(const State& state, const ParameterSpec& parameter);
  static Part& part_of(State& state, const ParameterSpec& p) { return const_cast<Part&>(part_of(std::as_const(state), p)); }
  State& state_of(BlockId id) { return blocks_[static_cast<size_t>(id)]; }
  const State& state_of(BlockId id) const { return blocks_[static_cast<size_t>(id)]; }
  void lay_out_optimizer(State& state, const Optimizer& optimizer);
  void divide(State& state, BlockId id);
  void allocate(State& state);
  void open_store(const Residence& residence);
  void bind(State& state);
  void make_room(State& state);  // for parameters that come from the disk
  void copy_to_computing(State& state, const Part& part);
  void rebind(State& state, const std::function<void()>& change);  // of spilled blocks, on any lane
  static void zero(const at::Tensor& flat);
  static at::Tensor buffer(int64_t elements, at::ScalarType type);  // flat, uninitialised, fit for the disk
  ParameterSlice slice(State& state, size_t parameter) const;
  void apply(State& state, const Optimizer& optimizer, const Update& update);
  static std::byte* record(const Part& part, size_t slot, int64_t chunk);  // in memory
  // `value`, `gradient` and `records`: of the tile's whole chunk. `gradient` null: it is zero.
  void apply_tile(State& state, Part& part, const BlockStore::Tile& tile, float* value, const float* gradient,
                  std::span<std::byte* const> records, const Optimizer& optimizer, std::span<const Update> updates);
  void each_piece(State& state, Part& part, size_t slot, int64_t chunk, std::byte* record, bool fills,
                  const PieceWork& work);
  void each_value(State& state, Part& part, int64_t chunk, std::byte* values, bool fills, const PieceWork& work);
  void walk_optimizer(BlockId id, Lane lane, bool fills, const PieceWork& work);
  void need(int64_t layer, std::span<const int64_t> begin) override;
  bool is_due(const Part& part) const;
  int64_t waiting(const Part& part) const { return log_.end() - part.made; }  // updates
  bool is_pending(const State& state) const;
  void bring(State& state, std::span<Part* const> parts, Lane lane);  // into memory, up to date
  void mark_made(State& state, Part& part);
  void renew_whole(State& state, Lane lane);
  void renew_streaming(State& state, std::span<Part* const> parts, Lane lane);
  void read(State& state, std::span<Part* const> parts, Lane lane);  // parameters from the disk
  void fill_computing(State& state, const Part& part, int64_t begin, std::span<const float> values);
  std::vector<NamedPart> parts_of(BlockId id, at::Tensor Part::* buffer);  // of such a buffer, parameter by parameter
  bool counts(const ParameterSpec& parameter) const;  // not another rank of the tensor axis
  // A piece of a parameter, `begin` counted in the part that is here, handed on as runs of the whole parameter. Unless it
  // is to be filled, only what this rank counts.
  void hand_on(const State& state, size_t parameter, NamedPart piece, bool fills, const PieceWork& work) const;
  bool first_of_replicas() const { return part_.replica == 0 && part_.ranks.split.tensor_rank == 0; }
  // What is updated is another buffer than what is computed with: a slice of it, or the host's.
  at::Tensor download_input(const at::Tensor& input);
  bool separate_master() const { return slices() || on_device(); }
  bool elementwise() const { return slot_arrays_ >= 0; }
  bool packs() const { return packing_ != Packing::fp32; }

  ModelShape shape_;
  ModelPart part_;
  at::ScalarType compute_type_;
  const Optimizer* optimizer_;  // borrowed; null: parameters only
  bool training_ = false;
  BlockId stored_parts_ = 0;  // numbered so far
  Packing packing_ = Packing::fp32;
  int slot_arrays_ = -1;  // optimizer state is this many flat arrays, laid out like the parameters; -1: another form
  std::vector<State> blocks_;
  std::unique_ptr<BlockStore> store_;  // null: nothing is spilled
  Device* device_;                     // borrowed; null: blocks are computed in the host's memory
  std::mutex binding_;                 // lanes change buffers of spilled blocks one at a time
  UpdateLog log_;                      // of spilled blocks
  bool keeps_experts_ = false;         // on the shelf, some
  int64_t experts_called_ = 0;
};

at::ScalarType compute_type(Precision precision);

}  // namespace megalith

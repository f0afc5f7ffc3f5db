// The state of a model as named tensors and pieces of them: for checkpoints, initial values and tests. If several ranks hold
// the same state, each rank reads different pieces, and together they read everything. Each rank fills all that it holds.
#pragma once
#include <vector>

#include "engine/tensor_piece.h"
#include "families/model_shape.h"
#include "schedule/op.h"

namespace megalith {

class BlockStates;
class Residency;
struct BlockState;
struct SegmentState;

class StatePieces {
 public:
  StatePieces(BlockStates& model, Residency& residency) : model_(model), residency_(residency) {}  // borrows both

  size_t blocks() const;
  const ModelShape& shape() const;

  // Return the names and shapes of all tensors, with views of those that this rank has in memory. Packed state has no views.
  std::vector<TensorPiece> parameters(BlockId id);
  std::vector<TensorPiece> gradients(BlockId id);
  std::vector<TensorPiece> optimizer_state(BlockId id);
  int64_t optimizer_bytes(BlockId id) const;

  // Call `work` for every piece of every tensor, in order, in memory or on disk. Packed numbers are passed as stored; their
  // scales are a separate tensor (NAME.scale). Pieces of a spilled block are in staging buffers, and the block must have no
  // pending update. `lane`: the lane of the calling thread.
  void read_parameters(BlockId id, Lane lane, const PieceWork& work);
  void read_optimizer(BlockId id, Lane lane, const PieceWork& work);
  void write_parameters(BlockId id, const PieceWork& work);
  void write_optimizer(BlockId id, const PieceWork& work);
  // Call after the float32 values in memory were written through parameters().
  void values_changed();

  // Sets initial weights and zeroes the optimizer state. Every weight is a function of (seed, parameter, index).
  void initialise(uint64_t seed);
  // Fills a piece of a parameter of this block with these initial weights.
  void fill_initial(BlockId id, uint64_t seed, const TensorPiece& piece) const;
  void zero_optimizer();

 private:
  enum class Direction : uint8_t { reads, fills };
  // Passes a piece of a parameter to `work` as contiguous ranges of the whole parameter. piece.begin counts in the part that
  // this rank holds. Reading skips elements that this rank does not count.
  void emit(const BlockState& state, size_t parameter, const TensorPiece& piece, Direction direction, const PieceWork& work) const;
  void emit_record(BlockState& state, SegmentState& segment, size_t slot, int64_t chunk, std::byte* record, Direction direction,
                   const PieceWork& work);
  void emit_values(BlockState& state, SegmentState& segment, int64_t chunk, std::byte* values, Direction direction,
                   const PieceWork& work);
  void walk_optimizer(BlockId id, Lane lane, Direction direction, const PieceWork& work);

  BlockStates& model_;
  Residency& residency_;
};

}  // namespace megalith

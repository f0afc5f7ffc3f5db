// Applies the optimizer to blocks whose state is in memory, or to tiles of state that streams through it.
#pragma once
#include <span>

#include "engine/block_state.h"

namespace megalith {

// Returns the sum of squares of a block's gradient, added in a fixed order. Only the part that this rank counts: if several
// ranks hold the same gradient, each counts a different part.
double gradient_squares(const BlockStates& model, BlockId id);

// Updates a block in memory, converts its values to the type of the computation and zeroes its gradient.
void optimizer_step(BlockStates& model, BlockId id, const Optimizer& optimizer, const Update& update);
// Only the update: converts and zeroes nothing.
void apply_update(const StateFormat& format, BlockState& state, const Optimizer& optimizer, const Update& update);
// Zeroes the gradient if it stays in memory between steps. Otherwise the op that creates it zeroes it.
void clear_gradient(BlockStates& model, BlockId id);

// A tile of a segment while its state streams. All pointers are to the beginning of the tile's chunk.
struct TileState {
  BlockStore::Tile tile;
  float* values = nullptr;
  const float* gradient = nullptr;  // null: it is zero
  std::span<std::byte* const> records;
};
void apply_tile(Packing packing, BlockState& state, SegmentState& segment, const TileState& tile, const Optimizer& optimizer,
                std::span<const Update> updates);

// Returns a record of packed optimizer state. The state must be in memory.
std::byte* record_of(const SegmentState& segment, size_t slot, int64_t chunk);

}  // namespace megalith

// Applies the optimizer to blocks whose state is in memory, or to tiles of state that streams through it.
#pragma once
#include <span>

#include "engine/block_state.h"

namespace megalith {

// Sum of squares of the gradient of a block, in a fixed order; of what several ranks have, the part that this rank counts.
double gradient_squares(const BlockStates& model, BlockId id);

// Updates a block in memory, converts its values to the type of the computation and zeroes its gradient.
void optimizer_step(BlockStates& model, BlockId id, const Optimizer& optimizer, const Update& update);
// The update alone.
void apply_update(const StateFormat& format, BlockState& state, const Optimizer& optimizer, const Update& update);
// If the gradient stays between steps; else the op that creates it zeroes it.
void clear_gradient(BlockStates& model, BlockId id);

// A tile of a segment while its state streams. All pointers are to the whole chunk of the tile.
struct TileState {
  BlockStore::Tile tile;
  float* values = nullptr;
  const float* gradient = nullptr;  // null: it is zero
  std::span<std::byte* const> records;
};
void apply_tile(Packing packing, BlockState& state, SegmentState& segment, const TileState& tile, const Optimizer& optimizer,
                std::span<const Update> updates);

// A record of packed optimizer state in memory.
std::byte* record_of(const SegmentState& segment, size_t slot, int64_t chunk);

}  // namespace megalith

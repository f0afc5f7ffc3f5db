// Exchanges the state of blocks with the ranks that hold the same blocks, and the tied table between two stages. The ops of
// the ranks and pipeline families call these functions.
#pragma once
#include "comm/channel.h"
#include "schedule/op.h"

namespace megalith {

class BlockStates;

// `all`: the ranks that hold the same blocks. `of_experts`: those among them that also hold the same experts; equal to `all`
// if experts are not spread over ranks.
struct Replicas {
  Channel& all;
  Channel& of_experts;
};

// Gathers whole parameters from the slices of all replicas.
void gather_parameters(BlockStates& model, BlockId id, const Replicas& replicas);
// Sums the gradient over the replicas; for a sliced block, only this rank's slice. `tensor`: the ranks of the tensor axis
// (null: only this one). Each of them has a part of the gradient of parameters that are not cut; these parts are summed too.
void reduce_gradient(BlockStates& model, BlockId id, const Replicas& replicas, Channel* tensor);
// Send the tied table from its stage to the stage of the head, and the gradient from the head back to the table. `peer` is
// the other rank's place in `pair`.
void sync_tied_table(BlockStates& model, BlockId id, Channel& pair, int peer);
void sync_tied_gradient(BlockStates& model, BlockId id, Channel& pair, int peer);

}  // namespace megalith

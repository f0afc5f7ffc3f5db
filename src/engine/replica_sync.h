// Exchanges the state of blocks with the ranks that hold the same blocks, and the tied table between two stages. These are
// what the ops of the ranks and pipeline families do with parameters and gradients.
#pragma once
#include "comm/channel.h"
#include "schedule/op.h"

namespace megalith {

class BlockStates;

// The ranks that hold the same blocks, and of these the ones that have the same experts: all if experts are not spread.
struct Replicas {
  Channel& all;
  Channel& of_experts;
};

// Whole parameters, from the slices of all replicas.
void gather_parameters(BlockStates& model, BlockId id, const Replicas& replicas);
// Sums the gradient over the replicas; of a sliced block, this rank's slice of it. `tensor`: the ranks that share the inside
// of blocks (null: none); what all of them hold has a part of its gradient on each.
void reduce_gradient(BlockStates& model, BlockId id, const Replicas& replicas, Channel* tensor);
// The table of another stage, to the rank of the tied head; and what that head added to its gradient, back. `peer` is the
// place of the other rank on `pair`.
void sync_tied_table(BlockStates& model, BlockId id, Channel& pair, int peer);
void sync_tied_gradient(BlockStates& model, BlockId id, Channel& pair, int peer);

}  // namespace megalith

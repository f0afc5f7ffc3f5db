// The channels on which one rank exchanges data with other ranks, by group. Every lane has its own channels, so that no lane
// waits for another lane.
#pragma once
#include <memory>
#include <optional>

#include "comm/channel.h"
#include "comm/world.h"
#include "engine/replica_sync.h"
#include "layout/mesh.h"
#include "model/exchange.h"

namespace megalith {

class ChannelExchange;

class ProcessGroups {
 public:
  // Collective: all ranks of the world create their groups at the same time. Borrows `world`, whose size is the layout's.
  ProcessGroups(World& world, const Layout& layout);
  ~ProcessGroups();

  World& world() { return world_; }
  const Mesh& mesh() const { return mesh_; }
  bool first() const { return mesh_.rank() == 0; }
  int ranks() const { return mesh_.layout().ranks(); }
  // Exchanges with the ranks that compute parts of the same blocks. Compute lane.
  Exchanges inside();
  // True if this rank counts the losses. All ranks of the tensor axis have the same losses, so only the first one counts.
  bool counts_losses() const { return mesh_.first(Axis::tensor); }
  // This rank computes sequences [begin, begin + each) of a step's batch.
  int64_t sequences_begin(int64_t batch) const { return sequences_each(batch) * mesh_.coordinate(Axis::data); }
  int64_t sequences_each(int64_t batch) const { return batch / mesh_.size(Axis::data); }

  // The ranks that have the other sequences of the batch. Null if this rank has all of them. Compute lane.
  Exchange* batch();
  // True if this rank counts a loss that all ranks with the same part of the model compute.
  bool counts_batch_loss() const { return mesh_.first(Axis::data) && mesh_.first(Axis::context); }

  Channel& everyone() { return everyone_; }                                                       // compute lane
  Replicas replicas() { return {replicas_, same_experts_ ? *same_experts_ : replicas_}; }         // net lane
  Channel* tensor_gradients() { return tensor_gradients_ ? &*tensor_gradients_ : nullptr; }       // net lane
  // Along the pipeline: a rank's place in the channel is its stage. Activations, their gradients and a tied table each have
  // their own channel.
  Channel& pipeline_forward() { return *forward_; }
  Channel& pipeline_backward() { return *backward_; }
  Channel& pipeline_table() { return *table_; }

 private:
  World& world_;
  Mesh mesh_;
  Channel everyone_, replicas_;
  std::optional<Channel> same_experts_, tensor_gradients_, forward_, backward_, table_;
  std::unique_ptr<ChannelExchange> tensor_, context_, expert_, batch_;  // compute lane
};

}  // namespace megalith

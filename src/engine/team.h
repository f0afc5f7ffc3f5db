// The ranks of a run as one of them sees them: where it stands in the mesh, and the channels on which it exchanges.
// Every lane has channels of its own, so that none waits for another's turn.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "comm/channel.h"
#include "layout/mesh.h"
#include "comm/world.h"
#include "layout/split.h"
#include "engine/replica_sync.h"
#include "model/exchange.h"

namespace megalith {

class Team {
 public:
  // Collective: all ranks of the world make their team at the same time. `world` is borrowed; its size is the layout's.
  Team(World& world, const Layout& layout, ContextForm form = ContextForm::ring);
  ~Team();

  World& world() { return world_; }
  const Mesh& mesh() const { return mesh_; }
  bool first() const { return mesh_.rank() == 0; }
  int ranks() const { return mesh_.layout().ranks(); }

  // Ranks that hold the same blocks and work on other sequences, or on other parts of them, with the same parameters.
  int replicas() const { return replicas_.size(); }
  Split split() const;
  Ranks inside();  // of blocks
  // Of the losses that ranks report, those of one rank of the tensor axis count.
  bool counts_losses() const { return mesh_.first(Axis::tensor); }
  // Sequences [begin, end) of a step's batch are this rank's.
  int64_t sequences_begin(int64_t batch) const { return batch / mesh_.size(Axis::data) * mesh_.place(Axis::data); }
  int64_t sequences_each(int64_t batch) const { return batch / mesh_.size(Axis::data); }

  Channel& everyone() { return everyone_; }              // compute lane
  Replicas replicas_net() { return {replicas_, same_experts_ ? *same_experts_ : replicas_}; }  // net lane
  Channel* tensor_net() { return tensor_net_ ? &*tensor_net_ : nullptr; }
  // Along the pipeline; places are stages. Activations, their gradients, and a tied table each have their own.
  Channel& forward_way() { return *forward_; }
  Channel& backward_way() { return *backward_; }
  Channel& table_way() { return *table_; }

 private:
  class ChannelExchange;

  World& world_;
  Mesh mesh_;
  ContextForm form_;
  Channel everyone_, replicas_;
  std::optional<Channel> same_experts_, tensor_net_, forward_, backward_, table_;
  std::unique_ptr<ChannelExchange> tensor_, context_, expert_;  // compute lane
};

}  // namespace megalith

#include "engine/process_groups.h"

#include <numeric>
#include <vector>

#include "engine/channel_exchange.h"

namespace megalith {
namespace {

std::vector<int> all_of(const Layout& layout) {
  std::vector<int> ranks(static_cast<size_t>(layout.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

ProcessGroups::ProcessGroups(World& world, const Layout& layout)
    : world_(world),
      mesh_(layout, world.rank()),
      everyone_(world.channel(all_of(layout), "all ranks")),
      replicas_(world.channel(mesh_.peers({Axis::data, Axis::context}), "data")) {
  const auto exchange = [&](Axis axis) {
    return std::make_unique<ChannelExchange>(world.channel(mesh_.peers(axis), name_of(axis)));
  };
  if (layout.tensor > 1) {
    tensor_gradients_.emplace(world.channel(mesh_.peers(Axis::tensor), "tensor, gradients"));
    tensor_ = exchange(Axis::tensor);
  }
  if (layout.data > 1)
    batch_ = std::make_unique<ChannelExchange>(world.channel(mesh_.peers(Axis::data), "data, whole batch"));
  if (layout.context > 1) context_ = exchange(Axis::context);
  if (layout.expert > 1) {
    same_experts_.emplace(world.channel(mesh_.expert_replicas(), "data, same experts"));
    expert_ = exchange(Axis::expert);
  }
  if (layout.pipeline > 1) {
    forward_.emplace(world.channel(mesh_.peers(Axis::pipeline), "pipeline, activations"));
    backward_.emplace(world.channel(mesh_.peers(Axis::pipeline), "pipeline, gradients"));
    table_.emplace(world.channel(mesh_.peers(Axis::pipeline), "pipeline, tied table"));
  }
}

ProcessGroups::~ProcessGroups() = default;

Exchange* ProcessGroups::batch() { return batch_.get(); }
Exchanges ProcessGroups::inside() { return {mesh_, tensor_.get(), context_.get(), expert_.get()}; }

}  // namespace megalith

#include "engine/forward.h"

#include "engine/replica_sync.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

// The parameters of a block are loaded while this object lives.
class LoadedBlock {
 public:
  LoadedBlock(const ForwardParts& parts, BlockId id) : parts_(parts), id_(id) {
    TierScope host(Tier::host);
    const Home& home = parts.model.at(id).home;
    if (home.placement != Placement::in_memory) parts.residency.load_updated(id, Lane::compute, LoadScope::likely_experts);
    // Without a schedule, all ranks are replicas.
    if (home.sliced) gather_parameters(parts.model, id, {parts.groups->everyone(), parts.groups->everyone()});
    if (parts.device.any()) parts.device.upload(id);
  }
  ~LoadedBlock() {
    if (!parts_.model.at(id_).home.parameters_stay) parts_.residency.evict(id_);
  }
  LoadedBlock(const LoadedBlock&) = delete;
  LoadedBlock& operator=(const LoadedBlock&) = delete;

 private:
  const ForwardParts& parts_;
  BlockId id_;
};

std::vector<float> values_of(const at::Tensor& x) {
  const at::Tensor values = x.to(at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

BlockId head_of(const ForwardParts& parts) { return static_cast<BlockId>(parts.model.size()) - 1; }

// Runs all blocks except the head.
at::Tensor forward_layers(const ForwardParts& parts, const Pass& pass) {
  at::Tensor x_NC;
  for (BlockId b = 0; b < head_of(parts); b++) {
    LoadedBlock loaded(parts, b);
    x_NC = parts.model.block(b).forward(x_NC, pass, nullptr);
  }
  return x_NC;
}

}  // namespace

at::Tensor forward_logits(const ForwardParts& parts, const Pass& pass, bool last_only) {
  at::Tensor x_NC = forward_layers(parts, pass);
  if (pass.cache) pass.cache->advance(pass.length);
  if (last_only)
    x_NC = x_NC.view({pass.sequences, pass.length, x_NC.size(1)}).select(1, pass.length - 1).contiguous();
  LoadedBlock table(parts, 0), head(parts, head_of(parts));
  return parts.model.head().logits(x_NC).to(at::kFloat);
}

std::vector<float> forward_losses(const ForwardParts& parts, const Pass& pass) {
  at::Tensor x_NC = forward_layers(parts, pass), each_N;
  LoadedBlock table(parts, 0), head(parts, head_of(parts));
  parts.model.head().loss(x_NC, pass, &each_N);
  return values_of(each_N);
}

std::vector<float> forward_representations(const ForwardParts& parts, const Pass& pass) {
  const at::Tensor x_NC = forward_layers(parts, pass);
  LoadedBlock head(parts, head_of(parts));
  return values_of(parts.model.head().represent(x_NC, pass));
}

}  // namespace megalith

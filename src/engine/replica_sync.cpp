#include "engine/replica_sync.h"

#include "engine/block_state.h"
#include "engine/exchange_buffer.h"
#include "layout/cuts.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

// Gathers the wide parameters of 16-bit buffers (model/computing_buffer.h). Member p of the channel provides those in
// elements [begin + cuts[p], begin + cuts[p + 1]).
void gather_wide(const BlockSpec& spec, const at::Tensor& computing, int64_t begin, std::span<const int64_t> cuts,
                 Channel& channel) {
  const int64_t first = spec.wide_before(begin);
  if (computing.numel() == spec.flat_size || spec.wide_before(begin + cuts.back()) == first) return;
  std::vector<int64_t> wide_cuts;
  for (int64_t cut : cuts) wide_cuts.push_back(spec.wide_before(begin + cut) - first);
  channel.all_gather(buffer_of(wide_values(spec, computing), first, wide_cuts.back()), wide_cuts);
}

}  // namespace

void gather_parameters(BlockStates& model, BlockId id, const Replicas& replicas) {
  BlockState& state = model.at(id);
  const at::ScalarType type = model.format().compute_type;
  const bool within = state.home.parameters_stay && model.format().wide();
  if (!state.computing.defined()) {
    MemoryScope scope(AllocationKind::parameters);
    const int64_t elements = computing_elements(state.spec(), type);
    model.rebind(state, [&] { state.computing = tensor::empty({elements}, at::TensorOptions().dtype(type)); });
  }
  for (SegmentState& segment : state.segments) {
    if (!within) model.copy_to_computing(state, segment);
    if (state.home.placement == Placement::on_disk) segment.values.reset();
    Channel& channel = segment.spread ? replicas.of_experts : replicas.all;
    const std::vector<int64_t> cuts = even_cuts(segment.flat.size(), channel.size());
    channel.all_gather(buffer_of(state.computing, segment.flat.begin, segment.flat.size()), cuts);
    gather_wide(state.spec(), state.computing, segment.flat.begin, cuts, channel);
  }
}

void reduce_gradient(BlockStates& model, BlockId id, const Replicas& replicas, Channel* tensor) {
  BlockState& state = model.at(id);
  const bool sliced = state.home.sliced;
  if (tensor)
    for (const ParameterSpec& p : state.spec().parameters)
      if (!p.is_cut()) tensor->all_reduce(buffer_of(state.gradients, p.offset, p.size()));
  for (const Segment& part : by_ranks(state.spec().segments)) {
    Channel& channel = part.spread ? replicas.of_experts : replicas.all;
    if (channel.size() == 1) continue;
    const Buffer gradient = buffer_of(state.gradients, part.range.begin, part.range.size());
    if (sliced) channel.reduce_scatter(gradient, even_cuts(part.range.size(), channel.size()));
    else channel.all_reduce(gradient);
  }
  if (!sliced || state.home.gradient_stays) return;
  for (SegmentState& segment : state.segments) {
    if (!segment.gradient.defined()) {
      MemoryScope scope(AllocationKind::gradients);
      segment.gradient = flat_buffer(segment.own.size(), at::kFloat);
    }
    segment.gradient.copy_(state.gradients.narrow(0, segment.own.begin, segment.own.size()));
  }
  model.rebind(state, [&] { state.gradients.reset(); });
}

void sync_tied_table(BlockStates& model, BlockId id, Channel& pair, int peer) {
  BlockState& state = model.at(id);
  if (state.home.here) return pair.send(bytes_of(state.computing), peer);
  MemoryScope scope(AllocationKind::parameters);
  const auto type = at::TensorOptions().dtype(model.format().compute_type);
  model.rebind(state, [&] { state.computing = tensor::empty({state.spec().flat_size}, type); });
  pair.receive(bytes_of(state.computing), peer);
}

void sync_tied_gradient(BlockStates& model, BlockId id, Channel& pair, int peer) {
  BlockState& state = model.at(id);
  if (!state.home.here) {
    pair.send(bytes_of(state.gradients), peer);
    return model.rebind(state, [&] { state.gradients.reset(); });
  }
  at::Tensor theirs = tensor::empty_like(state.gradients);
  pair.receive(bytes_of(theirs), peer);
  state.gradients.add_(theirs);
}

}  // namespace megalith

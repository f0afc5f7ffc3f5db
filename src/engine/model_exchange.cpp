// The part of ModelState that exchanges with the ranks that have the same blocks.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "engine/exchange_buffer.h"
#include "engine/model_state.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"

namespace megalith {
namespace {

// Of wide parameters of 16-bit buffers (model/computing_buffer.h), what lies in elements [begin + cuts[p],
// begin + cuts[p + 1]) comes from member p.
void gather_wide(const BlockSpec& spec, const at::Tensor& computing, int64_t begin, std::span<const int64_t> cuts,
                 Channel& channel) {
  const int64_t first = spec.wide_before(begin);
  if (computing.numel() == spec.flat_size || spec.wide_before(begin + cuts.back()) == first) return;
  std::vector<int64_t> wide_cuts;
  for (int64_t cut : cuts) wide_cuts.push_back(spec.wide_before(begin + cut) - first);
  channel.all_gather(buffer_of(wide_values(spec, computing), first, wide_cuts.back()), wide_cuts);
}

}  // namespace

void ModelState::gather(BlockId id, const Replicas& replicas) {
  State& state = state_of(id);
  const bool within = state.parameters_stay && compute_type_ == at::kFloat;
  if (!state.computing.defined()) {
    MemoryScope scope(AllocationKind::parameters);
    const int64_t elements = computing_elements(state.block->spec(), compute_type_);
    rebind(state, [&] { state.computing = at::empty({elements}, at::TensorOptions().dtype(compute_type_)); });
  }
  for (Part& part : state.parts) {
    if (!within) copy_to_computing(state, part);
    if (state.placement == Placement::on_disk) part.values.reset();
    Channel& channel = part.spread ? replicas.of_experts : replicas.all;
    const std::vector<int64_t> cuts = even_cuts(part.flat.size(), channel.size());
    channel.all_gather(buffer_of(state.computing, part.flat.begin, part.flat.size()), cuts);
    gather_wide(state.block->spec(), state.computing, part.flat.begin, cuts, channel);
  }
}

void ModelState::reduce(BlockId id, const Replicas& replicas, Channel* tensor) {
  State& state = state_of(id);
  // What is the same on all ranks that share the inside of a block has a share of its gradient on each.
  if (tensor)
    for (const ParameterSpec& p : state.block->spec().parameters)
      if (!p.is_cut()) tensor->all_reduce(buffer_of(state.gradients, p.offset, p.size()));
  for (const FlatPart& part : by_ranks(state.block->spec().parts)) {
    Channel& channel = part.spread ? replicas.of_experts : replicas.all;
    if (channel.size() == 1) continue;
    const Buffer gradient = buffer_of(state.gradients, part.range.begin, part.range.size());
    if (slices()) channel.reduce_scatter(gradient, even_cuts(part.range.size(), channel.size()));
    else channel.all_reduce(gradient);
  }
  if (!slices() || state.gradient_stays) return;
  for (Part& part : state.parts) {
    if (!part.sum.defined()) {
      MemoryScope scope(AllocationKind::gradients);
      part.sum = buffer(part.own.size(), at::kFloat);
    }
    part.sum.copy_(state.gradients.narrow(0, part.own.begin, part.own.size()));
  }
  rebind(state, [&] { state.gradients.reset(); });
}

void ModelState::lend(BlockId id, Channel& pair, int peer) {
  State& state = state_of(id);
  if (state.held) return pair.send(bytes_of(state.computing), peer);
  MemoryScope scope(AllocationKind::parameters);
  rebind(state,
         [&] { state.computing = at::empty({state.block->spec().flat_size}, at::TensorOptions().dtype(compute_type_)); });
  pair.receive(bytes_of(state.computing), peer);
}

void ModelState::collect(BlockId id, Channel& pair, int peer) {
  State& state = state_of(id);
  if (!state.held) {
    pair.send(bytes_of(state.gradients), peer);
    return rebind(state, [&] { state.gradients.reset(); });
  }
  at::Tensor theirs = at::empty_like(state.gradients);
  pair.receive(bytes_of(theirs), peer);
  state.gradients.add_(theirs);
}

}  // namespace megalith

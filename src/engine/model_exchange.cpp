// The part of ModelState that exchanges with the ranks that have the same blocks.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "engine/exchange_buffer.h"
#include "engine/model_state.h"
#include "memory/allocator.h"

namespace megalith {
void ModelState::gather(BlockId id, Channel& replicas) {
  State& state = state_of(id);
  const int64_t flat = state.block->spec().flat_size;
  const bool within = state.parameters_stay && compute_type_ == at::kFloat;
  if (!state.computing.defined()) {
    MemoryScope scope(AllocationKind::parameters);
    rebind(state, [&] { state.computing = at::empty({flat}, at::TensorOptions().dtype(compute_type_)); });
  }
  if (!within) state.computing.narrow(0, state.own.begin, state.own.size()).copy_(state.values);
  if (state.placement == Placement::away) state.values.reset();
  replicas.all_gather(buffer_of(state.computing), even_cuts(flat, replicas.size()));
}

void ModelState::reduce(BlockId id, Channel& replicas, Channel* tensor) {
  State& state = state_of(id);
  // What is the same on all ranks that share the inside of a block has a share of its gradient on each.
  if (tensor)
    for (const ParameterSpec& p : state.block->spec().parameters)
      if (!p.is_cut()) tensor->all_reduce(buffer_of(state.gradients, p.offset, p.size()));
  if (replicas.size() == 1) return;
  if (!slices()) return replicas.all_reduce(buffer_of(state.gradients));
  replicas.reduce_scatter(buffer_of(state.gradients), even_cuts(state.gradients.numel(), replicas.size()));
  if (state.gradient_stays) return;
  const at::Tensor own = state.gradients.narrow(0, state.own.begin, state.own.size());
  if (!state.sum.defined()) {
    MemoryScope scope(AllocationKind::gradients);
    state.sum = buffer(state.own.size(), at::kFloat);
  }
  state.sum.copy_(own);
  rebind(state, [&] { state.gradients.reset(); });
}

void ModelState::lend(BlockId id, Channel& pair, int peer) {
  State& state = state_of(id);
  if (state.held) return pair.send(bytes_of(state.computing), peer);
  MemoryScope scope(AllocationKind::parameters);
  rebind(state, [&] { state.computing = at::empty({state.block->spec().flat_size}, at::TensorOptions().dtype(compute_type_)); });
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

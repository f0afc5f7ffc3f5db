// The part of ModelState that moves blocks between memory and disk.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "base/error.h"
#include "engine/model_state.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

// What of a parameter lies in a chunk of the flat buffer.
struct Overlap {
  int64_t begin = 0, count = 0;  // inside the parameter
  int64_t at = 0;                // inside the chunk
};

Overlap overlap(const ParameterSpec& p, int64_t chunk_begin, int64_t chunk_count) {
  const int64_t first = std::max(p.offset, chunk_begin), last = std::min(p.offset + p.size(), chunk_begin + chunk_count);
  return last <= first ? Overlap{} : Overlap{first - p.offset, last - first, first - chunk_begin};
}

std::span<float> cut(float* data, int64_t offset, int64_t count) { return {data + offset, static_cast<size_t>(count)}; }

}  // namespace

void ModelState::open_store(const Residence& residence) {
  std::vector<StoredBlock> stored;
  bool any = false;
  for (const State& state : blocks_) {
    const int64_t flat = state.block->spec().flat_size;
    StoredBlock& block = stored.emplace_back();
    if (state.placement == Placement::memory) continue;
    any = true;
    if (state.placement == Placement::away) block.parameters = flat;
    if (state.placement == Placement::away && training_) block.gradient = flat;
    if (training_ && elementwise()) block.slots.assign(static_cast<size_t>(slot_arrays_), flat);
  }
  if (any) store_ = std::make_unique<BlockStore>(residence.spill, stored);
}

// Ops of one block that nothing orders (its gradient is stowed while its parameters are dropped, cleared while they are
// fetched) are still about one object: they take turns here.
void ModelState::rebind(State& state, const std::function<void()>& change) {
  std::lock_guard turn(binding_);
  change();
  bind(state);
}

at::Tensor ModelState::buffer(const State& state, at::ScalarType type) const {
  const int64_t flat = state.block->spec().flat_size;
  return type == at::kFloat ? disk_buffer(flat) : at::empty({flat}, at::TensorOptions().dtype(type));
}

void ModelState::fill_computing(State& state, int64_t begin, std::span<const float> values) {
  if (compute_type_ == at::kFloat) return;
  const auto count = static_cast<int64_t>(values.size());
  state.computing.narrow(0, begin, count).copy_(at::from_blob(const_cast<float*>(values.data()), {count}, at::kFloat));
}

void ModelState::renew(BlockId id, Lane lane, const Optimizer* optimizer) {
  State& state = state_of(id);
  if (!state.pending) {
    if (state.placement == Placement::away) fetch(id, lane);
    return;
  }
  if (elementwise()) renew_streaming(state, id, lane, *optimizer);
  else renew_whole(state, id, lane, *optimizer);
  state.pending.reset();
  if (state.placement != Placement::away) zero(state.gradients);
}

void ModelState::renew_streaming(State& state, BlockId id, Lane lane, const Optimizer& optimizer) {
  const bool away = state.placement == Placement::away, wide = compute_type_ == at::kFloat;
  if (away) {
    MemoryScope scope(AllocationKind::parameters);
    rebind(state, [&] { state.computing = buffer(state, compute_type_); });
    if (wide) state.values = state.computing;
  }
  // Arrays: the optimizer's, then what else is on disk.
  std::vector<BlockStore::Array> arrays;
  for (const BlockStore::Extent& slot : store_->slots(id)) arrays.push_back({slot, true, true});
  const size_t values = arrays.size();
  if (away) {
    arrays.push_back({store_->parameters(id), true, true, wide ? state.values.mutable_data_ptr<float>() : nullptr});
    arrays.push_back({store_->gradient(id), true, false});
  }
  store_->stream(lane, arrays, [&](int64_t begin, int64_t count, std::span<float* const> chunk) {
    float* value = away ? chunk[values] : state.values.mutable_data_ptr<float>() + begin;
    const float* gradient = away ? chunk[values + 1] : state.gradients.const_data_ptr<float>() + begin;
    const std::vector<ParameterSpec>& parameters = state.block->spec().parameters;
    for (size_t i = 0; i < parameters.size(); i++) {
      const Overlap o = overlap(parameters[i], begin, count);
      if (o.count == 0) continue;
      ParameterSlice slice{&state.facts[i], o.begin, cut(value, o.at, o.count),
                           {gradient + o.at, static_cast<size_t>(o.count)}, {}};
      for (size_t k = 0; k < values; k++) slice.slots.push_back(cut(chunk[k], o.at, o.count));
      optimizer.apply(slice, *state.pending, {});
    }
    fill_computing(state, begin, cut(value, 0, count));
  });
}

// An optimizer that looks at whole parameters.
void ModelState::renew_whole(State& state, BlockId id, Lane lane, const Optimizer& optimizer) {
  const bool away = state.placement == Placement::away;
  if (away) {
    MemoryScope scope(AllocationKind::staging);
    state.values = buffer(state, at::kFloat);
    state.gradients = buffer(state, at::kFloat);
    store_->read(lane, store_->parameters(id), state.values.mutable_data_ptr<float>());
    store_->read(lane, store_->gradient(id), state.gradients.mutable_data_ptr<float>());
  }
  apply(state, optimizer, *state.pending);
  if (compute_type_ == at::kFloat) {
    state.computing = state.values;
  } else {
    if (away) state.computing = buffer(state, compute_type_);
    state.computing.copy_(state.values);
  }
  if (!away) return;
  store_->write(lane, store_->parameters(id), state.values.const_data_ptr<float>());
  if (compute_type_ != at::kFloat) state.values.reset();
  rebind(state, [&] { state.gradients.reset(); });
}

void ModelState::fetch(BlockId id, Lane lane) {
  State& state = state_of(id);
  MEGALITH_ASSERT(state.placement == Placement::away && !state.computing.defined() && !state.pending, "{}",
                  state.block->spec().name);
  {
    MemoryScope scope(AllocationKind::parameters);
    rebind(state, [&] { state.computing = buffer(state, compute_type_); });
  }
  if (compute_type_ == at::kFloat) {
    state.values = state.computing;
    store_->read(lane, store_->parameters(id), state.values.mutable_data_ptr<float>());
  } else {
    store_->stream(lane, {{store_->parameters(id), true, false}}, [&](int64_t begin, int64_t count, std::span<float* const> chunk) {
      fill_computing(state, begin, cut(chunk[0], 0, count));
    });
  }
}

void ModelState::drop(BlockId id) {
  State& state = state_of(id);
  rebind(state, [&] {
    state.computing.reset();
    state.values.reset();
  });
}

void ModelState::clear(BlockId id) {
  State& state = state_of(id);
  MemoryScope scope(AllocationKind::gradients);
  rebind(state, [&] { state.gradients = buffer(state, at::kFloat); });
  zero(state.gradients);
}

void ModelState::stow(BlockId id, Lane lane) {
  State& state = state_of(id);
  store_->write(lane, store_->gradient(id), state.gradients.const_data_ptr<float>());
  rebind(state, [&] { state.gradients.reset(); });
}

void ModelState::leave_pending(const Update& update) {
  for (State& state : blocks_)
    if (state.placement != Placement::memory) state.pending = update;
}

void ModelState::forget_gradients() {
  for (State& state : blocks_)
    if (state.placement == Placement::moments_away) zero(state.gradients);
}

void ModelState::read_parameters(BlockId id, Lane lane, const PieceWork& look) {
  State& state = state_of(id);
  if (state.placement != Placement::away) {
    for (const NamedPart& part : parameters(id)) look(part);
    return;
  }
  MEGALITH_ASSERT(!state.pending, "{} has an update to be made", state.block->spec().name);
  store_->stream(lane, {{store_->parameters(id), true, false}}, [&](int64_t begin, int64_t count, std::span<float* const> chunk) {
    for (const ParameterSpec& p : state.block->spec().parameters)
      if (Overlap o = overlap(p, begin, count); o.count > 0) look({p.name, p.shape, cut(chunk[0], o.at, o.count), o.begin});
  });
}

void ModelState::write_parameters(BlockId id, const PieceWork& fill) {
  State& state = state_of(id);
  if (state.placement != Placement::away) {
    for (const NamedPart& part : parameters(id)) fill(part);
    if (compute_type_ != at::kFloat) state.computing.copy_(state.values);
    return;
  }
  store_->stream(Lane::compute, {{store_->parameters(id), false, true}},
                 [&](int64_t begin, int64_t count, std::span<float* const> chunk) {
                   std::fill(chunk[0], chunk[0] + count, 0.0f);  // gaps between parameters
                   for (const ParameterSpec& p : state.block->spec().parameters)
                     if (Overlap o = overlap(p, begin, count); o.count > 0)
                       fill({p.name, p.shape, cut(chunk[0], o.at, o.count), o.begin});
                 });
}

void ModelState::read_optimizer(BlockId id, Lane lane, const PieceWork& look) {
  State& state = state_of(id);
  if (state.optimizer.defined() || !training_) {
    for (const NamedPart& part : optimizer_state(id)) look(part);
    return;
  }
  MEGALITH_ASSERT(!state.pending, "{} has an update to be made", state.block->spec().name);
  for (size_t k = 0; k < store_->slots(id).size(); k++)
    store_->stream(lane, {{store_->slots(id)[k], true, false}}, [&](int64_t begin, int64_t count, std::span<float* const> chunk) {
      for (size_t i = 0; i < state.facts.size(); i++)
        if (Overlap o = overlap(state.block->spec().parameters[i], begin, count); o.count > 0)
          look({state.slots[i][k].name, state.slots[i][k].shape, cut(chunk[0], o.at, o.count), o.begin});
    });
}

void ModelState::write_optimizer(BlockId id, const PieceWork& fill) {
  State& state = state_of(id);
  if (state.optimizer.defined() || !training_) {
    for (const NamedPart& part : optimizer_state(id)) fill(part);
    return;
  }
  for (size_t k = 0; k < store_->slots(id).size(); k++)
    store_->stream(Lane::compute, {{store_->slots(id)[k], false, true}},
                   [&](int64_t begin, int64_t count, std::span<float* const> chunk) {
                     std::fill(chunk[0], chunk[0] + count, 0.0f);
                     for (size_t i = 0; i < state.facts.size(); i++)
                       if (Overlap o = overlap(state.block->spec().parameters[i], begin, count); o.count > 0)
                         fill({state.slots[i][k].name, state.slots[i][k].shape, cut(chunk[0], o.at, o.count), o.begin});
                   });
}

}  // namespace megalith

// The part of ModelState that moves blocks between memory and disk.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "base/error.h"
#include "engine/model_state.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

float* as_floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

std::span<float> cut(float* data, int64_t offset, int64_t count) { return {data + offset, static_cast<size_t>(count)}; }

// Bytes of any kind, as an array of float32.
StoredArray array_of(int64_t bytes) { return {(bytes + 3) / 4}; }

// Calls work(bytes of the tensor, bytes of the chunk) for each chunk of a tensor on disk.
template <class Work>
auto chunks_of(const at::Tensor& tensor, const Work& work) {
  return [&tensor, work](int64_t number, std::span<std::byte* const> chunk) {
    const int64_t begin = number * kSpillChunk;
    std::byte* data = static_cast<std::byte*>(tensor.mutable_data_ptr()) + begin;
    work(std::span(data, static_cast<size_t>(std::min<int64_t>(kSpillChunk, static_cast<int64_t>(tensor.nbytes()) - begin))), chunk[0]);
  };
}

}  // namespace

void ModelState::open_store(const Residence& residence) {
  std::vector<StoredBlock> stored;
  bool any = false;
  for (const State& state : blocks_) {
    const int64_t own = state.own.size();
    StoredBlock& block = stored.emplace_back();
    if (!state.held) continue;
    const size_t id = stored.size() - 1;
    if (id < residence.parked.size() && residence.parked[id] > 0) {
      block.inputs.assign(static_cast<size_t>(residence.micros), array_of(residence.parked[id]));
      any = true;
    }
    if (state.placement == Placement::memory) continue;
    any = true;
    if (state.placement == Placement::away) block.parameters.elements = own;
    if (state.placement == Placement::away && training_) block.gradient.elements = own;
    if (training_ && elementwise()) block.slots.assign(static_cast<size_t>(slot_arrays_), stored_slot(*state.layout));
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

at::Tensor ModelState::buffer(int64_t elements, at::ScalarType type) {
  return type == at::kFloat ? disk_buffer(elements) : at::empty({elements}, at::TensorOptions().dtype(type));
}

void ModelState::fill_computing(State& state, int64_t begin, std::span<const float> values) {
  if (compute_type_ == at::kFloat || home_is_apart()) return;  // gather or upload does
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
  if (state.placement != Placement::away) clear_gradient(id);
}

void ModelState::renew_streaming(State& state, BlockId id, Lane lane, const Optimizer& optimizer) {
  const bool away = state.placement == Placement::away, wide = compute_type_ == at::kFloat;
  // What is gathered or uploaded comes whole, as the float32 it is saved from.
  const bool keeps_values = wide || home_is_apart();
  if (away) {
    MemoryScope scope(AllocationKind::parameters);
    if (keeps_values) state.values = buffer(state.own.size(), at::kFloat);
    if (!home_is_apart()) rebind(state, [&] { state.computing = wide ? state.values : buffer(state.own.size(), compute_type_); });
  }
  // Arrays: the optimizer's, then what else is on disk.
  std::vector<BlockStore::Array> arrays;
  for (const BlockStore::Extent& slot : store_->slots(id)) arrays.push_back({slot, true, true});
  const size_t values = arrays.size();
  if (away) {
    arrays.push_back({store_->parameters(id), true, true, keeps_values ? state.values.mutable_data_ptr<float>() : nullptr});
    arrays.push_back({store_->gradient(id), true, false});
  }
  store_->stream(lane, arrays, [&](int64_t number, std::span<std::byte* const> chunk) {
    const int64_t begin = number * kStateChunk;
    float* value = away ? as_floats(chunk[values]) : state.values.mutable_data_ptr<float>() + begin;
    const float* gradient = away ? as_floats(chunk[values + 1]) : state.sum.const_data_ptr<float>() + begin;
    apply_chunk(state, number, value, gradient, chunk.first(values), optimizer, *state.pending);
    fill_computing(state, begin, cut(value, 0, state.layout->chunk_size(number)));
  });
}

// An optimizer that looks at whole parameters.
void ModelState::renew_whole(State& state, BlockId id, Lane lane, const Optimizer& optimizer) {
  const bool away = state.placement == Placement::away;
  if (away) {
    MemoryScope scope(AllocationKind::staging);
    state.values = buffer(state.own.size(), at::kFloat);
    state.sum = buffer(state.own.size(), at::kFloat);
    store_->read(lane, store_->parameters(id), state.values.mutable_data_ptr<float>());
    store_->read(lane, store_->gradient(id), state.sum.mutable_data_ptr<float>());
  }
  apply(state, optimizer, *state.pending);
  if (home_is_apart()) {  // gather or upload brings it
  } else if (compute_type_ == at::kFloat) {
    state.computing = state.values;
  } else {
    if (away) state.computing = buffer(state.own.size(), compute_type_);
    state.computing.copy_(state.values);
  }
  if (!away) return;
  store_->write(lane, store_->parameters(id), state.values.const_data_ptr<float>());
  state.sum.reset();
  if (home_is_apart()) return;
  if (compute_type_ != at::kFloat) state.values.reset();
  rebind(state, [] {});
}

void ModelState::fetch(BlockId id, Lane lane) {
  State& state = state_of(id);
  MEGALITH_ASSERT(state.placement == Placement::away && !state.computing.defined() && !state.pending, "{}",
                  state.block->spec().name);
  const bool wide = compute_type_ == at::kFloat;
  {
    MemoryScope scope(AllocationKind::parameters);
    if (wide || home_is_apart()) state.values = buffer(state.own.size(), at::kFloat);
    if (!home_is_apart()) rebind(state, [&] { state.computing = wide ? state.values : buffer(state.own.size(), compute_type_); });
  }
  if (wide || home_is_apart()) {
    store_->read(lane, store_->parameters(id), state.values.mutable_data_ptr<float>());
  } else {
    store_->stream(lane, {{store_->parameters(id), true, false}}, [&](int64_t number, std::span<std::byte* const> chunk) {
      fill_computing(state, number * kStateChunk, cut(as_floats(chunk[0]), 0, state.layout->chunk_size(number)));
    });
  }
}

void ModelState::drop(BlockId id) {
  State& state = state_of(id);
  // A device's copy goes while the host's may be here already, for its next turn.
  const bool home = state.placement == Placement::away && !(on_device() && state.computing.defined());
  rebind(state, [&] {
    state.computing.reset();
    if (home) state.values.reset();  // else they are the slice that stays
  });
}

void ModelState::clear(BlockId id) {
  State& state = state_of(id);
  MemoryScope scope(AllocationKind::gradients);
  const int64_t flat = state.block->spec().flat_size;
  rebind(state, [&] { state.gradients = on_device() ? device_->empty({flat}, at::kFloat) : buffer(flat, at::kFloat); });
  if (!home_is_apart()) state.sum = state.gradients;
  zero(state.gradients);
}

void ModelState::stow(BlockId id, Lane lane) {
  State& state = state_of(id);
  store_->write(lane, store_->gradient(id), state.sum.const_data_ptr<float>());
  state.sum.reset();
  if (!home_is_apart()) rebind(state, [&] { state.gradients.reset(); });  // else the whole one went when it was summed
}

void ModelState::park(BlockId id, MicroId micro, Lane lane, const at::Tensor& input) {
  MEGALITH_ASSERT(input.is_contiguous());
  store_->stream(lane, {{store_->input(id, micro, static_cast<int64_t>(input.nbytes())), false, true}},
                 chunks_of(input, [](std::span<std::byte> from, std::byte* to) { std::ranges::copy(from, to); }));
}

void ModelState::unpark(BlockId id, MicroId micro, Lane lane, const at::Tensor& input) {
  store_->stream(lane, {{store_->input(id, micro, static_cast<int64_t>(input.nbytes())), true, false}},
                 chunks_of(input, [](std::span<std::byte> to, std::byte* from) { std::copy_n(from, to.size(), to.data()); }));
}

void ModelState::leave_pending(const Update& update) {
  for (State& state : blocks_)
    if (state.held && state.placement != Placement::memory) state.pending = update;
}

void ModelState::forget_gradients() {
  for (State& state : blocks_)
    if (state.placement == Placement::moments_away && state.gradient_stays) zero(state.gradients);
}

void ModelState::read_parameters(BlockId id, Lane lane, const PieceWork& look) {
  State& state = state_of(id);
  if (!state.held) return;
  if (state.placement != Placement::away) {
    const std::vector<NamedPart> parts = parameters(id);
    for (size_t p = 0; p < parts.size(); p++) hand_on(state, p, parts[p], false, look);
    return;
  }
  MEGALITH_ASSERT(!state.pending, "{} has an update to be made", state.block->spec().name);
  store_->stream(lane, {{store_->parameters(id), true, false}}, [&](int64_t number, std::span<std::byte* const> chunk) {
    for (const StateLayout::Piece& piece : state.layout->pieces(number)) {
      const ParameterSpec& p = state.block->spec().parameters[piece.parameter];
      hand_on(state, piece.parameter, {p.name, p.whole_shape, cut(as_floats(chunk[0]), piece.at, piece.count), piece.begin},
              false, look);
    }
  });
}

void ModelState::write_parameters(BlockId id, const PieceWork& fill) {
  State& state = state_of(id);
  if (!state.held) return;
  if (state.placement != Placement::away) {
    const std::vector<NamedPart> parts = parameters(id);
    for (size_t p = 0; p < parts.size(); p++) hand_on(state, p, parts[p], true, fill);
    if (compute_type_ != at::kFloat && !home_is_apart()) state.computing.copy_(state.values);
    return;
  }
  store_->stream(Lane::compute, {{store_->parameters(id), false, true}},
                 [&](int64_t number, std::span<std::byte* const> chunk) {
                   // Gaps between parameters are zero.
                   std::ranges::fill(cut(as_floats(chunk[0]), 0, state.layout->chunk_size(number)), 0.0f);
                   for (const StateLayout::Piece& piece : state.layout->pieces(number)) {
                     const ParameterSpec& p = state.block->spec().parameters[piece.parameter];
                     hand_on(state, piece.parameter,
                             {p.name, p.whole_shape, cut(as_floats(chunk[0]), piece.at, piece.count), piece.begin}, true, fill);
                   }
                 });
}

void ModelState::read_optimizer(BlockId id, Lane lane, const PieceWork& look) { walk_optimizer(id, lane, false, look); }
void ModelState::write_optimizer(BlockId id, const PieceWork& fill) { walk_optimizer(id, Lane::compute, true, fill); }

void ModelState::walk_optimizer(BlockId id, Lane lane, bool fills, const PieceWork& work) {
  State& state = state_of(id);
  if (!training_ || !state.held) return;
  if (state.optimizer.defined() && !packs()) {
    const std::vector<NamedPart> parts = optimizer_state(id);
    for (size_t i = 0; i < parts.size(); i++) {
      if (elementwise()) hand_on(state, i / static_cast<size_t>(slot_arrays_), parts[i], fills, work);
      else if (fills || first_of_replicas()) work(parts[i]);
    }
    return;
  }
  for (size_t k = 0; k < static_cast<size_t>(slot_arrays_); k++) {
    if (state.optimizer.defined()) {
      for (int64_t chunk = 0; chunk < state.layout->chunks(); chunk++)
        each_part(state, k, chunk, record(state, k, chunk), fills, work);
      continue;
    }
    MEGALITH_ASSERT(fills || !state.pending, "{} has an update to be made", state.block->spec().name);
    store_->stream(lane, {{store_->slots(id)[k], !fills, fills}}, [&](int64_t chunk, std::span<std::byte* const> records) {
      if (fills) std::fill_n(records[0], state.layout->record_bytes(chunk), std::byte{0});  // gaps, too
      each_part(state, k, chunk, records[0], fills, work);
    });
  }
}

}  // namespace megalith

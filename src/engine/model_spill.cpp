// The part of ModelState that moves blocks between memory and disk.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "base/error.h"
#include "engine/model_state.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"

namespace megalith {
namespace {

static_assert(kPartAlign * sizeof(float) % kDiskAlign == 0, "parts of a flat buffer come and go by themselves");

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
    work(std::span(data, static_cast<size_t>(std::min<int64_t>(kSpillChunk, static_cast<int64_t>(tensor.nbytes()) - begin))),
         chunk[0]);
  };
}

}  // namespace

void ModelState::open_store(const Residence& residence) {
  std::vector<StoredBlock> stored;
  bool any = false;
  for (size_t id = 0; id < blocks_.size(); id++) {
    const State& state = blocks_[id];
    for (const Part& part : state.parts) {
      StoredBlock& block = stored.emplace_back();
      if (!state.held) continue;
      // Inputs are with the first part.
      if (&part == &state.parts.front() && id < residence.parked.size() && residence.parked[id] > 0) {
        block.inputs.assign(static_cast<size_t>(residence.micros), array_of(residence.parked[id]));
        any = true;
      }
      if (state.placement == Placement::in_memory) continue;
      any = true;
      if (state.placement == Placement::on_disk) block.parameters.elements = part.own.size();
      if (state.placement == Placement::on_disk && training_) block.gradient.elements = part.own.size();
      if (training_ && elementwise()) block.slots.assign(static_cast<size_t>(slot_arrays_), stored_slot(*part.layout));
    }
  }
  if (any) store_ = std::make_unique<BlockStore>(residence.spill, stored, residence.staging);
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

void ModelState::make_room(State& state) {
  MemoryScope scope(AllocationKind::parameters);
  const int64_t elements = computing_elements(state.block->spec(), compute_type_);
  if (!separate_master()) rebind(state, [&] { state.computing = buffer(elements, compute_type_); });
  for (Part& part : state.parts) {
    // What is gathered or uploaded comes whole, as the float32 it is saved from.
    if (separate_master()) part.values = buffer(part.own.size(), at::kFloat);
    else if (compute_type_ == at::kFloat) part.values = state.computing.narrow(0, part.own.begin, part.own.size());
  }
}

void ModelState::fill_computing(State& state, const Part& part, int64_t begin, std::span<const float> values) {
  if (compute_type_ == at::kFloat || separate_master()) return;  // gather or upload does
  const auto count = static_cast<int64_t>(values.size());
  const at::Tensor from = at::from_blob(const_cast<float*>(values.data()), {count}, at::kFloat);
  write_computing(state.block->spec(), state.computing, part.own.begin + begin, from);
}

void ModelState::renew(BlockId id, Lane lane, Bring which) {
  State& state = state_of(id);
  if (!elementwise() && is_pending(state)) return renew_whole(state, lane);
  if (state.placement == Placement::on_disk) make_room(state);
  std::vector<Part*> coming;
  for (Part& part : state.parts) {
    if (which == Bring::all || is_due(part)) coming.push_back(&part);
    part.chosen = part.expert < 0;
    part.present = false;
  }
  bring(state, coming, lane);
}

void ModelState::renew_streaming(State& state, std::span<Part* const> parts, Lane lane) {
  const bool away = state.placement == Placement::on_disk, keeps_values = compute_type_ == at::kFloat || separate_master();
  const auto values = static_cast<size_t>(slot_arrays_);
  // Arrays: the optimizer's, then what else is on disk.
  std::vector<std::vector<BlockStore::Array>> all;
  for (const Part* part : parts) {
    std::vector<BlockStore::Array>& arrays = all.emplace_back();
    for (const BlockStore::Extent& slot : store_->slots(part->stored)) arrays.push_back({slot, true, true});
    if (!away) continue;
    float* const whole = keeps_values ? part->values.mutable_data_ptr<float>() : nullptr;
    arrays.push_back({store_->parameters(part->stored), true, true, whole});
    if (part->gradient_waits) arrays.push_back({store_->gradient(part->stored), true, false});
  }
  store_->stream(lane, all, [&](const BlockStore::Tile& tile, std::span<std::byte* const> chunk) {
    Part& part = *parts[tile.part];
    const int64_t begin = tile.chunk * kStateChunk;
    float* value = away ? as_floats(chunk[values]) : part.values.mutable_data_ptr<float>() + begin;
    const float* gradient = !part.gradient_waits ? nullptr
                            : away               ? as_floats(chunk[values + 1])
                                                 : part.sum.const_data_ptr<float>() + begin;
    apply_tile(state, part, tile, value, gradient, chunk.first(values), *optimizer_, log_.from(part.made));
    fill_computing(state, part, begin + tile.first, cut(value, tile.first, tile.count));
  });
}

// An optimizer that looks at whole parameters.
void ModelState::renew_whole(State& state, Lane lane) {
  const bool away = state.placement == Placement::on_disk, wide = compute_type_ == at::kFloat;
  const int64_t flat = state.block->spec().flat_size;
  if (away) {
    MemoryScope scope(AllocationKind::staging);
    const at::Tensor values = buffer(flat, at::kFloat), sums = buffer(flat, at::kFloat);
    for (Part& part : state.parts) {
      part.values = values.narrow(0, part.own.begin, part.own.size());
      part.sum = sums.narrow(0, part.own.begin, part.own.size());
      store_->read(lane, {{{store_->parameters(part.stored), part.values.mutable_data_ptr<float>()},
                           {store_->gradient(part.stored), part.sum.mutable_data_ptr<float>()}}});
    }
    const int64_t elements = computing_elements(state.block->spec(), compute_type_);
    if (!separate_master()) state.computing = wide ? values : buffer(elements, compute_type_);
  }
  MEGALITH_ASSERT(waiting(state.parts.front()) == 1, "{}", state.block->spec().name);
  apply(state, *optimizer_, log_.from(state.parts.front().made).front());
  for (Part& part : state.parts) {
    if (!wide && !separate_master()) copy_to_computing(state, part);
    if (!away) continue;
    store_->write(lane, {{{store_->parameters(part.stored), part.values.mutable_data_ptr<float>()}}});
    part.sum.reset();
    if (!wide && !separate_master()) part.values.reset();
  }
  if (away && !separate_master()) rebind(state, [] {});
  for (Part& part : state.parts) mark_made(state, part);
}

void ModelState::fetch(BlockId id, Lane lane) {
  State& state = state_of(id);
  MEGALITH_ASSERT(state.placement == Placement::on_disk && !state.computing.defined(), "{}", state.block->spec().name);
  make_room(state);
  std::vector<Part*> coming;
  for (Part& part : state.parts)
    if (part.chosen) coming.push_back(&part);
  bring(state, coming, lane);
}

void ModelState::read(State& state, std::span<Part* const> parts, Lane lane) {
  std::vector<BlockStore::Whole> whole;
  std::vector<std::vector<BlockStore::Array>> staged;
  for (const Part* part : parts) {
    const BlockStore::Extent stored = store_->parameters(part->stored);
    if (part->values.defined()) whole.push_back({stored, part->values.mutable_data_ptr<float>()});
    else staged.push_back({{stored, true, false}});
  }
  MEGALITH_ASSERT(whole.empty() || staged.empty());
  store_->read(lane, whole);
  store_->stream(lane, staged, [&](const BlockStore::Tile& tile, std::span<std::byte* const> chunk) {
    fill_computing(state, *parts[tile.part], tile.chunk * kStateChunk + tile.first,
                   cut(as_floats(chunk[0]), tile.first, tile.count));
  });
}

void ModelState::drop(BlockId id) {
  State& state = state_of(id);
  // A device's copy goes while the host's may be here already, for its next turn.
  const bool home = state.placement == Placement::on_disk && !(on_device() && state.computing.defined());
  rebind(state, [&] {
    state.computing.reset();
    for (Part& part : state.parts) {
      part.present = false;
      if (home) part.values.reset();  // else they are the slice that stays
    }
  });
}

void ModelState::clear(BlockId id) {
  State& state = state_of(id);
  MemoryScope scope(AllocationKind::gradients);
  const int64_t flat = state.block->spec().flat_size;
  rebind(state, [&] { state.gradients = on_device() ? device_->empty({flat}, at::kFloat) : buffer(flat, at::kFloat); });
  for (Part& part : state.parts) {
    if (!separate_master()) part.sum = state.gradients.narrow(0, part.own.begin, part.own.size());
    if (part.chosen) zero(state.gradients.narrow(0, part.flat.begin, part.flat.size()));  // others when they are
  }
}

void ModelState::stow(BlockId id, Lane lane) {
  State& state = state_of(id);
  std::vector<BlockStore::Whole> whole;
  for (const Part& part : state.parts)
    if (part.chosen) whole.push_back({store_->gradient(part.stored), part.sum.mutable_data_ptr<float>()});
  store_->write(lane, whole);
  for (Part& part : state.parts) part.sum.reset();
  if (!separate_master()) rebind(state, [&] { state.gradients.reset(); });  // else the whole one went when it was summed
}

at::Tensor ModelState::park(BlockId id, MicroId micro, Lane lane, const at::Tensor& input) {
  MEGALITH_ASSERT(input.is_contiguous());
  if (on_device()) return download_input(input);
  const BlockId stored = state_of(id).parts.front().stored;
  store_->stream(lane, {{store_->input(stored, micro, static_cast<int64_t>(input.nbytes())), false, true}},
                 chunks_of(input, [](std::span<std::byte> from, std::byte* to) { std::ranges::copy(from, to); }));
  return {};
}

void ModelState::unpark(BlockId id, MicroId micro, Lane lane, const at::Tensor& parked, const at::Tensor& input) {
  if (on_device()) return device_->upload(parked, input);
  const BlockId stored = state_of(id).parts.front().stored;
  store_->stream(
      lane, {{store_->input(stored, micro, static_cast<int64_t>(input.nbytes())), true, false}},
      chunks_of(input, [](std::span<std::byte> to, std::byte* from) { std::copy_n(from, to.size(), to.data()); }));
}

void ModelState::read_parameters(BlockId id, Lane lane, const PieceWork& look) {
  State& state = state_of(id);
  if (!state.held) return;
  if (state.placement != Placement::on_disk) {
    const std::vector<NamedPart> parts = parameters(id);
    for (size_t p = 0; p < parts.size(); p++) hand_on(state, p, parts[p], false, look);
    return;
  }
  // (On the write lane the schedule sees to it, and what this step leaves pending may be there already.)
  MEGALITH_ASSERT(lane == Lane::write || !is_pending(state), "{} has an update to be made", state.block->spec().name);
  for (Part& part : state.parts)
    store_->stream(lane, {{store_->parameters(part.stored), true, false}},
                   [&](int64_t number, std::span<std::byte* const> chunk) {
                     each_value(state, part, number, chunk[0], false, look);
                   });
}

void ModelState::each_value(State& state, Part& part, int64_t chunk, std::byte* values, bool fills, const PieceWork& work) {
  for (const StateLayout::Piece& piece : part.layout->pieces(chunk)) {
    const ParameterSpec& p = state.block->spec().parameters[piece.parameter];
    const std::span<float> here = cut(as_floats(values), piece.at, piece.count);
    hand_on(state, piece.parameter, {p.name, p.whole_shape, here, piece.begin}, fills, work);
  }
}

void ModelState::write_parameters(BlockId id, const PieceWork& fill) {
  State& state = state_of(id);
  if (!state.held) return;
  if (state.placement != Placement::on_disk) {
    const std::vector<NamedPart> parts = parameters(id);
    for (size_t p = 0; p < parts.size(); p++) hand_on(state, p, parts[p], true, fill);
    for (const Part& part : state.parts)
      if (compute_type_ != at::kFloat && !separate_master()) copy_to_computing(state, part);
    return;
  }
  for (Part& part : state.parts)
    store_->stream(Lane::compute, {{store_->parameters(part.stored), false, true}},
                   [&](int64_t number, std::span<std::byte* const> chunk) {
                     // Gaps between parameters are zero.
                     std::ranges::fill(cut(as_floats(chunk[0]), 0, part.layout->chunk_size(number)), 0.0f);
                     each_value(state, part, number, chunk[0], true, fill);
                   });
}

void ModelState::read_optimizer(BlockId id, Lane lane, const PieceWork& look) { walk_optimizer(id, lane, false, look); }
void ModelState::write_optimizer(BlockId id, const PieceWork& fill) { walk_optimizer(id, Lane::compute, true, fill); }

void ModelState::walk_optimizer(BlockId id, Lane lane, bool fills, const PieceWork& work) {
  State& state = state_of(id);
  if (!training_ || !state.held) return;
  if (state.parts.front().optimizer.defined() && !packs()) {
    const std::vector<NamedPart> parts = optimizer_state(id);
    for (size_t i = 0; i < parts.size(); i++) {
      if (elementwise()) hand_on(state, i / static_cast<size_t>(slot_arrays_), parts[i], fills, work);
      else if (fills || first_of_replicas()) work(parts[i]);
    }
    return;
  }
  for (size_t k = 0; k < static_cast<size_t>(slot_arrays_); k++)
    for (Part& part : state.parts) {
      if (part.optimizer.defined()) {
        for (int64_t chunk = 0; chunk < part.layout->chunks(); chunk++)
          each_piece(state, part, k, chunk, record(part, k, chunk), fills, work);
        continue;
      }
      MEGALITH_ASSERT(fills || lane == Lane::write || !is_pending(state), "{} has an update to be made",
                      state.block->spec().name);
      const BlockStore::Array array{store_->slots(part.stored)[k], !fills, fills};
      store_->stream(lane, {array}, [&](int64_t chunk, std::span<std::byte* const> records) {
        if (fills) std::fill_n(records[0], part.layout->record_bytes(chunk), std::byte{0});  // gaps, too
        each_piece(state, part, k, chunk, records[0], fills, work);
      });
    }
}

}  // namespace megalith

#include "engine/state_pieces.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "base/error.h"
#include "base/normals.h"
#include "engine/block_update.h"
#include "engine/residency.h"

namespace megalith {
namespace {

DType packed_type(Packing packing) { return packing == Packing::bf16 ? DType::bf16 : DType::u8; }
const std::string kScaleSuffix = ".scale";

// `begin`: index of the first element of `out` inside the parameter. The values do not depend on how a parameter is cut.
void fill_normal(std::span<float> out, int64_t begin, const Philox& random, float deviation) {
  constexpr int64_t kChunk = 1 << 14;
  const auto size = static_cast<int64_t>(out.size());
  at::parallel_for(0, (size + kChunk - 1) / kChunk, 1, [&](int64_t first, int64_t last) {
    const int64_t from = first * kChunk, to = std::min(size, last * kChunk);
    for (int64_t at = from; at < to; at += kChunk) {
      const auto part = out.subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(kChunk, to - at)));
      fill_normals(random, static_cast<uint64_t>(begin + at), part);
      for (float& value : part) value *= deviation;
    }
  });
}

// Views of one buffer of a block, parameter by parameter.
std::vector<TensorPiece> pieces_of(const BlockState& state, at::Tensor SegmentState::* buffer) {
  std::vector<TensorPiece> pieces;
  for (const ParameterSpec& p : state.spec().parameters) {
    const SegmentState& segment = state.segment_of(p);
    const Overlap here = overlap(p, segment.own);
    pieces.push_back({p.name, p.whole_shape, floats_of(segment.*buffer, here.at, here.count), here.begin});
  }
  return pieces;
}

}  // namespace

size_t StatePieces::blocks() const { return model_.size(); }
const ModelShape& StatePieces::shape() const { return model_.shape(); }
void StatePieces::values_changed() { model_.values_changed(); }

void StatePieces::initialise(uint64_t seed) {
  for (BlockId id = 0; id < static_cast<BlockId>(model_.size()); id++)
    write_parameters(id, [&](const TensorPiece& piece) { fill_initial(id, seed, piece); });
  zero_optimizer();
}

void StatePieces::fill_initial(BlockId id, uint64_t seed, const TensorPiece& piece) const {
  const ParameterSpec& it = *std::ranges::find(model_.at(id).spec().parameters, piece.name, &ParameterSpec::name);
  if (it.initial_std > 0)
    fill_normal(piece.values, piece.begin, Philox(seed, RandomUse::initial_weights, static_cast<uint64_t>(it.number)),
                static_cast<float>(it.initial_std));
  else
    std::ranges::fill(piece.values, static_cast<float>(it.initial));
}

void StatePieces::zero_optimizer() {
  for (BlockId id = 0; id < static_cast<BlockId>(model_.size()); id++)
    write_optimizer(id, [](const TensorPiece& piece) { std::ranges::fill(piece.bytes(), std::byte{0}); });
}

std::vector<TensorPiece> StatePieces::parameters(BlockId id) { return pieces_of(model_.at(id), &SegmentState::values); }

std::vector<TensorPiece> StatePieces::gradients(BlockId id) { return pieces_of(model_.at(id), &SegmentState::gradient); }

std::vector<TensorPiece> StatePieces::optimizer_state(BlockId id) {
  const BlockState& state = model_.at(id);
  const StateFormat& format = model_.format();
  std::vector<TensorPiece> pieces;
  for (size_t p = 0; p < state.slots.size(); p++) {
    const ParameterSpec& parameter = state.spec().parameters[p];
    const SegmentState& segment = state.segment_of(parameter);
    for (const Slot& slot : state.slots[p]) {
      if (!format.packs()) {
        pieces.push_back({slot.name, slot.shape, floats_of(segment.optimizer, slot.offset, slot.size),
                          format.elementwise() ? overlap(parameter, segment.own).begin : 0});
        continue;
      }
      pieces.push_back({slot.name, slot.shape, {}, 0, packed_type(format.packing)});
      if (segment.format->scales(p) > 0) pieces.push_back({slot.name + kScaleSuffix, {segment.format->scales(p)}, {}});
    }
  }
  return pieces;
}

int64_t StatePieces::optimizer_bytes(BlockId id) const {
  const StateFormat& format = model_.format();
  int64_t bytes = 0;
  for (const SegmentState& segment : std::as_const(model_).at(id).segments)
    bytes += format.elementwise() ? format.slot_arrays * segment.format->slot_bytes()
                                  : segment.optimizer_size * int64_t{sizeof(float)};
  return bytes;
}

void StatePieces::emit(const BlockState& state, size_t parameter, const TensorPiece& piece, Direction direction,
                       const PieceWork& work) const {
  const ParameterSpec& p = state.spec().parameters[parameter];
  const int64_t size = size_of(piece.type);
  int64_t first = 0, last = static_cast<int64_t>(piece.bytes().size()) / size;  // elements of the piece
  if (direction == Direction::reads) {
    if (!model_.counts(p)) return;
    const Overlap counted = overlap(p, state.segment_of(p).counted);
    first = std::max(first, counted.begin - piece.begin);
    last = std::min(last, counted.begin + counted.count - piece.begin);
  }
  if (first >= last) return;
  for_each_contiguous(p, piece.begin + first, piece.begin + last, [&](int64_t whole, int64_t here, int64_t count) {
    const int64_t at = here - piece.begin;
    TensorPiece range = piece;
    range.begin = whole;
    if (piece.type == DType::f32) range.values = piece.values.subspan(static_cast<size_t>(at), static_cast<size_t>(count));
    else range.packed = piece.packed.subspan(static_cast<size_t>(at * size), static_cast<size_t>(count * size));
    work(range);
  });
}

void StatePieces::emit_record(BlockState& state, SegmentState& segment, size_t slot, int64_t chunk, std::byte* record,
                              Direction direction, const PieceWork& work) {
  const StateFormat& format = model_.format();
  for (const SlotFormat::ParameterRange& range : segment.format->pieces(chunk)) {
    const Slot& of = state.slots[range.parameter][slot];
    const PackedSlot at = segment.format->slot(chunk, range, record);
    const auto count = static_cast<size_t>(range.count), scales = static_cast<size_t>(range.scales);
    TensorPiece piece{of.name, of.shape, {}, range.begin};
    if (format.packs()) {
      piece.type = packed_type(format.packing);
      piece.packed = {at.numbers, count * static_cast<size_t>(packed_bytes(format.packing))};
    } else {
      piece.values = {reinterpret_cast<float*>(at.numbers), count};
    }
    emit(state, range.parameter, piece, direction, work);
    // Only one replica passes the scales. They are numbered in the whole parameter, because ranks never cut the elements
    // that share a scale.
    if (scales > 0 && (direction == Direction::fills || model_.first_of_replicas()))
      work({of.name + kScaleSuffix, {segment.format->scales(range.parameter)}, {at.scales, scales}, range.first_scale});
  }
}

void StatePieces::emit_values(BlockState& state, SegmentState& segment, int64_t chunk, std::byte* values, Direction direction,
                              const PieceWork& work) {
  for (const SlotFormat::ParameterRange& range : segment.format->pieces(chunk)) {
    const ParameterSpec& p = state.spec().parameters[range.parameter];
    const std::span<float> here(reinterpret_cast<float*>(values) + range.at, static_cast<size_t>(range.count));
    emit(state, range.parameter, {p.name, p.whole_shape, here, range.begin}, direction, work);
  }
}

void StatePieces::read_parameters(BlockId id, Lane lane, const PieceWork& work) {
  BlockState& state = model_.at(id);
  if (!state.home.here) return;
  if (state.home.placement != Placement::on_disk) {
    const std::vector<TensorPiece> pieces = parameters(id);
    for (size_t p = 0; p < pieces.size(); p++) emit(state, p, pieces[p], Direction::reads, work);
    return;
  }
  // No earlier update may be pending. On the write lane the schedule ensures this, and the update of the current step may
  // already be pending.
  MEGALITH_ASSERT(lane == Lane::write || !residency_.is_pending(id), "{} has a pending update", state.spec().name);
  BlockStore& store = *residency_.store();
  for (SegmentState& segment : state.segments)
    store.stream(lane, {{store.parameters(segment.stored), true, false}},
                 [&](int64_t number, std::span<std::byte* const> chunk) {
                   emit_values(state, segment, number, chunk[0], Direction::reads, work);
                 });
}

void StatePieces::write_parameters(BlockId id, const PieceWork& work) {
  BlockState& state = model_.at(id);
  if (!state.home.here) return;
  if (state.home.placement != Placement::on_disk) {
    const std::vector<TensorPiece> pieces = parameters(id);
    for (size_t p = 0; p < pieces.size(); p++) emit(state, p, pieces[p], Direction::fills, work);
    for (const SegmentState& segment : state.segments)
      if (!model_.format().wide() && !model_.layout().separate_master()) model_.copy_to_computing(state, segment);
    return;
  }
  BlockStore& store = *residency_.store();
  for (SegmentState& segment : state.segments)
    store.stream(Lane::compute, {{store.parameters(segment.stored), false, true}},
                 [&](int64_t number, std::span<std::byte* const> chunk) {
                   // Gaps between parameters are zero.
                   std::fill_n(reinterpret_cast<float*>(chunk[0]), segment.format->chunk_size(number), 0.0f);
                   emit_values(state, segment, number, chunk[0], Direction::fills, work);
                 });
}

void StatePieces::read_optimizer(BlockId id, Lane lane, const PieceWork& work) {
  walk_optimizer(id, lane, Direction::reads, work);
}
void StatePieces::write_optimizer(BlockId id, const PieceWork& work) {
  walk_optimizer(id, Lane::compute, Direction::fills, work);
}

void StatePieces::walk_optimizer(BlockId id, Lane lane, Direction direction, const PieceWork& work) {
  BlockState& state = model_.at(id);
  const StateFormat& format = model_.format();
  const bool fills = direction == Direction::fills;
  if (!format.training || !state.home.here) return;
  if (state.segments.front().optimizer.defined() && !format.packs()) {
    const std::vector<TensorPiece> pieces = optimizer_state(id);
    for (size_t i = 0; i < pieces.size(); i++) {
      if (format.elementwise()) emit(state, i / static_cast<size_t>(format.slot_arrays), pieces[i], direction, work);
      else if (fills || model_.first_of_replicas()) work(pieces[i]);
    }
    return;
  }
  for (size_t k = 0; k < static_cast<size_t>(format.slot_arrays); k++)
    for (SegmentState& segment : state.segments) {
      if (segment.optimizer.defined()) {
        for (int64_t chunk = 0; chunk < segment.format->chunks(); chunk++)
          emit_record(state, segment, k, chunk, record_of(segment, k, chunk), direction, work);
        continue;
      }
      MEGALITH_ASSERT(fills || lane == Lane::write || !residency_.is_pending(id), "{} has a pending update",
                      state.spec().name);
      BlockStore& store = *residency_.store();
      const BlockStore::Array array{store.slots(segment.stored)[k], !fills, fills};
      store.stream(lane, {array}, [&](int64_t chunk, std::span<std::byte* const> records) {
        if (fills) std::fill_n(records[0], segment.format->record_bytes(chunk), std::byte{0});  // also zeroes the gaps
        emit_record(state, segment, k, chunk, records[0], direction, work);
      });
    }
}

}  // namespace megalith

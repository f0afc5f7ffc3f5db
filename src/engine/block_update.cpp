#include "engine/block_update.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>

namespace megalith {
namespace {

// Updates a few elements at a time, so that their gradient is still in the cache when it is zeroed. Zeroing it later would
// take another pass over memory. For elementwise optimizers.
void apply_and_clear(const ParameterSlice& whole, const Optimizer& optimizer, const Update& update) {
  constexpr int64_t kElements = int64_t{1} << 15;  // four streams of them fit into the cache of one core
  auto* gradient = const_cast<float*>(whole.gradient.data());  // the caller wants it cleared
  const int64_t elements = std::ssize(whole.value);
  at::parallel_for(0, (elements + kElements - 1) / kElements, 1, [&](int64_t first, int64_t last) {
    for (int64_t begin = first * kElements; begin < std::min(elements, last * kElements); begin += kElements) {
      const auto at = static_cast<size_t>(begin), count = static_cast<size_t>(std::min(kElements, elements - begin));
      ParameterSlice part{whole.parameter, whole.begin + begin, whole.value.subspan(at, count),
                          whole.gradient.subspan(at, count), {}};
      for (const std::span<float>& slot : whole.slots) part.slots.push_back(slot.subspan(at, count));
      optimizer.apply(part, update, {});
      std::memset(gradient + at, 0, count * sizeof(float));
    }
  });
}

}  // namespace

double gradient_squares(const BlockStates& model, BlockId id) {
  const BlockState& state = model.at(id);
  double sum = 0;
  for (const ParameterSpec& p : state.spec().parameters) {
    const SegmentState& segment = state.segment_of(p);
    const Overlap here = overlap(p, segment.counted);
    if (here.count == 0 || !model.counts(p) || p.sign_rate > 0 || !segment.chosen) continue;
    sum += sum_of_squares(floats_of(segment.gradient, segment.counted.begin - segment.own.begin + here.at, here.count));
  }
  return sum;
}

std::byte* record_of(const SegmentState& segment, size_t slot, int64_t chunk) {
  return static_cast<std::byte*>(segment.optimizer.mutable_data_ptr()) +
         static_cast<int64_t>(slot) * segment.format->slot_bytes() + segment.format->record_offset(chunk);
}

void apply_tile(Packing packing, BlockState& state, SegmentState& segment, const TileState& at, const Optimizer& optimizer,
                std::span<const Update> updates) {
  const BlockStore::Tile& tile = at.tile;
  for (SlotFormat::ParameterRange range : segment.format->pieces(tile.chunk)) {
    // Keep the part that lies in the tile. A tile of packed numbers is a whole chunk, so scales are not cut.
    const int64_t skip = std::max<int64_t>(0, tile.first - range.at);
    range.begin += skip;
    range.at += skip;
    range.count = std::min(range.count - skip, tile.first + tile.count - range.at);
    if (range.count <= 0) continue;
    const auto count = static_cast<size_t>(range.count);
    PackedSlice slice{&state.facts[range.parameter], range.begin, {at.values + range.at, count}, {}, {}};
    if (at.gradient) slice.gradient = {at.gradient + range.at, count};
    for (std::byte* record : at.records) slice.slots.push_back(segment.format->slot(tile.chunk, range, record));
    apply_packed(optimizer, packing, slice, updates);
  }
}

void apply_update(const StateFormat& format, BlockState& state, const Optimizer& optimizer, const Update& update) {
  if (format.packs()) {
    std::vector<std::byte*> records(static_cast<size_t>(format.slot_arrays));
    for (SegmentState& segment : state.segments)
      for (int64_t chunk = 0; chunk < segment.format->chunks(); chunk++) {
        for (size_t k = 0; k < records.size(); k++) records[k] = record_of(segment, k, chunk);
        const int64_t begin = chunk * kStateChunk;
        apply_tile(format.packing, state, segment,
                   {{0, chunk, 0, segment.format->chunk_size(chunk)}, segment.values.mutable_data_ptr<float>() + begin,
                    segment.gradient.const_data_ptr<float>() + begin, records},
                   optimizer, {&update, 1});
      }
    return;
  }
  for (size_t i = 0; i < state.facts.size(); i++) {
    ParameterSlice whole = state.slice(i);
    if (whole.value.empty()) continue;
    std::vector<std::vector<double>> statistics;
    for (int round = 0; round < optimizer.statistics_rounds(); round++) {
      std::vector<double> sums(static_cast<size_t>(optimizer.statistics_size(state.facts[i], round)), 0.0);
      optimizer.gather(round, whole, update, statistics, sums);
      statistics.push_back(std::move(sums));
    }
    optimizer.apply(whole, update, statistics);
  }
}

void optimizer_step(BlockStates& model, BlockId id, const Optimizer& optimizer, const Update& update) {
  BlockState& state = model.at(id);
  const StateFormat& format = model.format();
  // True if the whole gradient is in memory, this rank updates the whole block, and the optimizer is elementwise.
  const bool fused = state.home.gradient_stays && format.elementwise() && !format.packs() && !state.home.sliced;
  for (size_t i = 0; i < state.facts.size() && fused; i++) apply_and_clear(state.slice(i), optimizer, update);
  if (!fused) apply_update(format, state, optimizer, update);
  if (!format.wide() && !model.layout().separate_master())  // with a separate master, gather or upload converts
    for (const SegmentState& segment : state.segments) model.copy_to_computing(state, segment);
  if (!fused) clear_gradient(model, id);
}

void clear_gradient(BlockStates& model, BlockId id) {
  if (model.at(id).home.gradient_stays) zero(model.at(id).gradients);
}

}  // namespace megalith

#include "engine/slot_format.h"

#include <algorithm>

namespace megalith {
namespace {

// Returns the index of the first parameter that ends after `element` of the flat buffer. Parameters are sorted by offset.
size_t first_after(const BlockSpec& spec, int64_t element) {
  const auto ends = [&](const ParameterSpec& p) { return p.offset + p.size() <= element; };
  return static_cast<size_t>(std::ranges::partition_point(spec.parameters, ends) - spec.parameters.begin());
}

// Calls visit(parameter, overlap) for every parameter that has elements in the range.
template <class Visit>
void each_in(const BlockSpec& spec, const FlatRange& range, const Visit& visit) {
  for (size_t p = first_after(spec, range.begin); p < spec.parameters.size() && spec.parameters[p].offset < range.end; p++)
    if (const Overlap here = overlap(spec.parameters[p], range); here.count > 0) visit(p, here);
}

FlatRange chunk_of(const FlatRange& range, int64_t chunk) {
  const int64_t begin = range.begin + chunk * kStateChunk;
  return {begin, std::min(range.end, begin + kStateChunk)};
}

// All chunks inside one parameter have the same number of scales: a chunk is a multiple of the block that shares a scale.
// So it is enough to check the chunks where parameters begin and end, and one between them.
int64_t most_scales(const BlockSpec& spec, Packing packing, const FlatRange& range) {
  int64_t most = 0;
  const auto look_at = [&](int64_t chunk) {
    int64_t scales = 0;
    each_in(spec, chunk_of(range, chunk),
            [&](size_t, const Overlap& here) { scales += scale_count(packing, here.begin, here.count); });
    most = std::max(most, scales);
  };
  each_in(spec, range, [&](size_t, const Overlap& all) {
    const int64_t first = all.at / kStateChunk, last = (all.at + all.count - 1) / kStateChunk;
    for (int64_t chunk : {first, std::min(first + 1, last), last}) look_at(chunk);
  });
  return most;
}

}  // namespace

Overlap overlap(const ParameterSpec& p, const FlatRange& range) {
  const int64_t first = std::max(p.offset, range.begin), last = std::min(p.offset + p.size(), range.end);
  return last <= first ? Overlap{} : Overlap{first - p.offset, last - first, first - range.begin};
}

SlotSize slot_size(const BlockSpec& spec, Packing packing, const FlatRange& range) {
  return {packing, range.size(), packing == Packing::int8 ? most_scales(spec, packing, range) : 0};
}

int64_t SlotSize::chunk_size(int64_t chunk) const { return std::min(kStateChunk, elements - chunk * kStateChunk); }

SlotFormat::SlotFormat(const BlockSpec& spec, Packing packing, const FlatRange& range)
    : size_(slot_size(spec, packing, range)), scales_(spec.parameters.size(), 0) {
  for (int64_t chunk = 0; chunk < size_.chunks(); chunk++) {
    std::vector<ParameterRange>& pieces = chunks_.emplace_back();
    int64_t scales = 0;
    each_in(spec, chunk_of(range, chunk), [&](size_t p, const Overlap& here) {
      ParameterRange piece{p, here.begin, here.count, here.at, 0, scales, scales_[p]};
      piece.scales = scale_count(packing, piece.begin, piece.count);
      scales += piece.scales;
      scales_[p] += piece.scales;
      pieces.push_back(piece);
    });
  }
}

PackedSlot SlotFormat::slot(int64_t chunk, const ParameterRange& piece, std::byte* record) const {
  const int64_t bytes = packed_bytes(packing());
  auto* scales = reinterpret_cast<float*>(record + bytes * chunk_size(chunk));  // chunks are whole multiples of kFlatAlign
  return {record + bytes * piece.at, piece.scales > 0 ? scales + piece.scale_at : nullptr};
}

}  // namespace megalith

#include "engine/slot_format.h"

#include <algorithm>

namespace megalith {

Overlap overlap(const ParameterSpec& p, const FlatRange& range) {
  const int64_t first = std::max(p.offset, range.begin), last = std::min(p.offset + p.size(), range.end);
  return last <= first ? Overlap{} : Overlap{first - p.offset, last - first, first - range.begin};
}

SlotFormat::SlotFormat(const BlockSpec& spec, Packing packing, const FlatRange& range)
    : packing_(packing), size_(range.size()), scales_(spec.parameters.size(), 0) {
  for (int64_t begin = range.begin; begin < range.end; begin += kStateChunk) {
    const FlatRange chunk{begin, std::min(range.end, begin + kStateChunk)};
    std::vector<ParameterRange>& pieces = chunks_.emplace_back();
    int64_t scales = 0;
    for (size_t p = 0; p < spec.parameters.size(); p++) {
      const Overlap here = overlap(spec.parameters[p], chunk);
      if (here.count == 0) continue;
      ParameterRange piece{p, here.begin, here.count, here.at, 0, scales, scales_[p]};
      piece.scales = scale_count(packing, piece.begin, piece.count);
      scales += piece.scales;
      scales_[p] += piece.scales;
      pieces.push_back(piece);
    }
    most_scales_ = std::max(most_scales_, scales);
  }
}

int64_t SlotFormat::chunk_size(int64_t chunk) const { return std::min(kStateChunk, size_ - chunk * kStateChunk); }

PackedSlot SlotFormat::slot(int64_t chunk, const ParameterRange& piece, std::byte* record) const {
  const int64_t bytes = packed_bytes(packing_);
  auto* scales = reinterpret_cast<float*>(record + bytes * chunk_size(chunk));  // chunks are whole multiples of kFlatAlign
  return {record + bytes * piece.at, piece.scales > 0 ? scales + piece.scale_at : nullptr};
}

}  // namespace megalith

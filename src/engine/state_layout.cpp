#include "engine/state_layout.h"

#include <algorithm>

namespace megalith {

StateLayout::StateLayout(const BlockSpec& spec, Packing packing)
    : packing_(packing), flat_size_(spec.flat_size), scales_(spec.parameters.size(), 0) {
  for (int64_t begin = 0; begin < flat_size_; begin += kStateChunk) {
    const int64_t end = std::min(flat_size_, begin + kStateChunk);
    std::vector<Piece>& pieces = chunks_.emplace_back();
    int64_t scales = 0;
    for (size_t p = 0; p < spec.parameters.size(); p++) {
      const ParameterSpec& it = spec.parameters[p];
      const int64_t first = std::max(it.offset, begin), last = std::min(it.offset + it.size(), end);
      if (last <= first) continue;
      Piece piece{p, first - it.offset, last - first, first - begin, 0, scales, scales_[p]};
      piece.scales = scale_count(packing, piece.begin, piece.count);
      scales += piece.scales;
      scales_[p] += piece.scales;
      pieces.push_back(piece);
    }
    most_scales_ = std::max(most_scales_, scales);
  }
}

int64_t StateLayout::chunk_size(int64_t chunk) const { return std::min(kStateChunk, flat_size_ - chunk * kStateChunk); }

PackedSlot StateLayout::slot(int64_t chunk, const Piece& piece, std::byte* record) const {
  const int64_t bytes = packed_bytes(packing_);
  auto* scales = reinterpret_cast<float*>(record + bytes * chunk_size(chunk));  // chunks are whole multiples of kFlatAlign
  return {record + bytes * piece.at, piece.scales > 0 ? scales + piece.scale_at : nullptr};
}

}  // namespace megalith

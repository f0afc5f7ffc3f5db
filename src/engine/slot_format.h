// Where a block's optimizer state lies, one number an element, packed: the same in memory and on disk. A slot is a row
// of records, one for every chunk of what this rank updates of the flat buffer: the chunk's numbers, then the scales of
// its pieces.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "families/block_spec.h"
#include "optim/packed_state.h"

namespace megalith {

// Elements of a chunk: what streams through memory at a time. Part of what packed numbers depend on: a block of
// elements with a common scale ends where a chunk ends.
inline constexpr int64_t kStateChunk = int64_t{1} << 18;

// What of a parameter lies in a range: elements [begin, begin + count) of it, from `at` on inside the range.
struct Overlap {
  int64_t begin = 0, count = 0, at = 0;
};
Overlap overlap(const ParameterSpec& parameter, const FlatRange& range);

// The size of a slot, without the list of its chunks: the planner asks for slots that no machine has room for.
struct SlotSize {
  Packing packing = Packing::fp32;
  int64_t elements = 0;
  int64_t most_scales = 0;  // of a chunk
  int64_t chunks() const { return (elements + kStateChunk - 1) / kStateChunk; }
  int64_t chunk_size(int64_t chunk) const;                     // elements
  int64_t scale_bytes() const { return 4 * most_scales; }  // room in every record
  int64_t record_bytes(int64_t chunk) const { return packed_bytes(packing) * chunk_size(chunk) + scale_bytes(); }
  int64_t record_offset(int64_t chunk) const { return chunk * (packed_bytes(packing) * kStateChunk + scale_bytes()); }
  int64_t bytes() const { return elements == 0 ? 0 : record_offset(chunks() - 1) + record_bytes(chunks() - 1); }
};
SlotSize slot_size(const BlockSpec& spec, Packing packing, const FlatRange& range);

class SlotFormat {
 public:
  SlotFormat(const BlockSpec& spec, Packing packing, const FlatRange& range);

  // What of a parameter lies in a chunk.
  struct ParameterRange {
    size_t parameter = 0;
    int64_t begin = 0, count = 0;  // elements, inside the parameter
    int64_t at = 0;                // first element inside the chunk
    int64_t scales = 0;            // how many,
    int64_t scale_at = 0;          // from here on inside the record,
    int64_t first_scale = 0;       // and inside the parameter
  };
  const std::vector<ParameterRange>& pieces(int64_t chunk) const { return chunks_[static_cast<size_t>(chunk)]; }
  const SlotSize& size() const { return size_; }
  int64_t chunks() const { return size_.chunks(); }
  int64_t chunk_size(int64_t chunk) const { return size_.chunk_size(chunk); }  // elements
  int64_t elements() const { return size_.elements; }
  int64_t scales(size_t parameter) const { return scales_[parameter]; }

  Packing packing() const { return size_.packing; }
  int64_t scale_bytes() const { return size_.scale_bytes(); }
  int64_t record_bytes(int64_t chunk) const { return size_.record_bytes(chunk); }
  int64_t record_offset(int64_t chunk) const { return size_.record_offset(chunk); }
  int64_t slot_bytes() const { return size_.bytes(); }
  // A piece's part of a slot's record of its chunk.
  PackedSlot slot(int64_t chunk, const ParameterRange& piece, std::byte* record) const;

 private:
  SlotSize size_;
  std::vector<std::vector<ParameterRange>> chunks_;
  std::vector<int64_t> scales_;             // by parameter
};

}  // namespace megalith

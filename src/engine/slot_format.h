// The format of packed optimizer state with one number per element, the same in memory and on disk. A slot is a sequence of
// records, one per chunk of the range that this rank updates. A record has the numbers of the chunk, then the scales of its
// pieces.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "families/block_spec.h"
#include "optim/packed_state.h"

namespace megalith {

// Elements of a chunk, the unit that streams through memory. Packed numbers depend on it: a block of elements with a common
// scale ends where a chunk ends.
inline constexpr int64_t kStateChunk = int64_t{1} << 18;

// The part of a parameter that lies in a range: elements [begin, begin + count) of the parameter, which begin at element
// `at` of the range.
struct Overlap {
  int64_t begin = 0, count = 0, at = 0;
};
Overlap overlap(const ParameterSpec& parameter, const FlatRange& range);

// The size of a slot, without the list of its chunks. The planner also asks for slots that are too large for any machine.
struct SlotSize {
  Packing packing = Packing::fp32;
  int64_t elements = 0;
  int64_t most_scales = 0;  // the largest number of scales in a chunk
  int64_t chunks() const { return (elements + kStateChunk - 1) / kStateChunk; }
  int64_t chunk_size(int64_t chunk) const;                     // elements
  int64_t scale_bytes() const { return 4 * most_scales; }  // reserved in every record
  int64_t record_bytes(int64_t chunk) const { return packed_bytes(packing) * chunk_size(chunk) + scale_bytes(); }
  int64_t record_offset(int64_t chunk) const { return chunk * (packed_bytes(packing) * kStateChunk + scale_bytes()); }
  int64_t bytes() const { return elements == 0 ? 0 : record_offset(chunks() - 1) + record_bytes(chunks() - 1); }
};
SlotSize slot_size(const BlockSpec& spec, Packing packing, const FlatRange& range);

class SlotFormat {
 public:
  SlotFormat(const BlockSpec& spec, Packing packing, const FlatRange& range);

  // The part of a parameter that lies in a chunk.
  struct ParameterRange {
    size_t parameter = 0;
    int64_t begin = 0, count = 0;  // elements, inside the parameter
    int64_t at = 0;                // first element inside the chunk
    int64_t scales = 0;            // number of scales
    int64_t scale_at = 0;          // first scale inside the record
    int64_t first_scale = 0;       // first scale inside the parameter
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
  // Returns the numbers and scales of a piece in `record`, which is the record of the chunk in one slot.
  PackedSlot slot(int64_t chunk, const ParameterRange& piece, std::byte* record) const;

 private:
  SlotSize size_;
  std::vector<std::vector<ParameterRange>> chunks_;
  std::vector<int64_t> scales_;             // by parameter
};

}  // namespace megalith

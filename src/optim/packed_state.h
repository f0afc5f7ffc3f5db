// Optimizer state in fewer bytes: kept packed, unpacked for an update a few thousand elements at a time, packed again.
// Optimizers see float32 only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/config.h"
#include "optim/optimizer.h"

namespace megalith {

inline constexpr int64_t kScaleBlock = 256;  // elements that share a scale, counted from the parameter's begin

int64_t packed_bytes(Packing packing);  // an element, scales apart
// Scales of elements [begin, begin + count) of a parameter. A cut inside a block gives both parts a scale.
int64_t scale_count(Packing packing, int64_t begin, int64_t count);

// One slot of a range of elements.
struct PackedSlot {
  std::byte* numbers = nullptr;
  float* scales = nullptr;  // null where the packing has none
};

struct PackedSlice {
  const ParameterFacts* parameter = nullptr;  // borrowed
  int64_t begin = 0;                          // as in ParameterSlice
  std::span<float> value;
  std::span<const float> gradient;
  std::vector<PackedSlot> slots;
};

// Updates of an optimizer that looks at elements one by one, one after the other. The gradient is the first one's (empty:
// zero); that of all others is zero. A few elements at a time make all of them, so that they stay in a core's cache. Where
// an update rounds, it does so at random: bits follow from the update's seed and number, the parameter's number, the slot
// and the element's index, so the result does not depend on threads, nor on cuts that are block ends.
void apply_packed(const Optimizer& optimizer, Packing packing, const PackedSlice& slice, std::span<const Update> updates);

// Plain conversions of a slot's elements from `begin` on; `random` as in block_code.h.
void unpack(Packing packing, bool negative, const PackedSlot& from, int64_t begin, std::span<float> values);
void pack(Packing packing, bool negative, std::span<const float> values, int64_t begin, std::span<const uint16_t> random,
          const PackedSlot& to);

}  // namespace megalith

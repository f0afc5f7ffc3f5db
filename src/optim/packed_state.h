// Optimizer state in fewer bytes. The state is stored packed. An update unpacks a few thousand elements at a time and packs
// them again. Optimizers only see float32.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/config.h"
#include "optim/optimizer.h"

namespace megalith {

inline constexpr int64_t kScaleBlock = 256;  // elements that share a scale, counted from the parameter's begin

int64_t packed_bytes(Packing packing);  // bytes per element, without the scales
// Number of scales of elements [begin, begin + count) of a parameter. If a cut is inside a block, both parts have a scale.
int64_t scale_count(Packing packing, int64_t begin, int64_t count);

// One slot of a range of elements.
struct PackedSlot {
  std::byte* numbers = nullptr;
  float* scales = nullptr;  // null if the packing has no scales
};

struct PackedSlice {
  const ParameterFacts* parameter = nullptr;  // borrowed
  int64_t begin = 0;                          // the same as in ParameterSlice
  std::span<float> value;
  std::span<const float> gradient;
  std::vector<PackedSlot> slots;
};

// Applies several updates in order. The optimizer must treat elements independently. The first update uses the slice's
// gradient (zero if it is empty). The gradient of all other updates is zero. All updates run on a few elements at a time,
// so that these stay in a core's cache. Rounding is random. Its bits depend only on the update's seed and number, the
// parameter's number, the slot and the element's index. So the result does not depend on threads, nor on cuts at block ends.
void apply_packed(const Optimizer& optimizer, Packing packing, const PackedSlice& slice, std::span<const Update> updates);

// Convert elements of a slot, starting at element `begin` of the parameter. `random` is as in block_code.h.
void unpack(Packing packing, bool negative, const PackedSlot& from, int64_t begin, std::span<float> values);
void pack(Packing packing, bool negative, std::span<const float> values, int64_t begin, std::span<const uint16_t> random,
          const PackedSlot& to);

}  // namespace megalith

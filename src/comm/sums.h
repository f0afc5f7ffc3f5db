// Sums over the buffers of several ranks, element by element, always in the order given.
// Partial sums are kept wider than 16-bit elements: float for all types but double.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/buffer.h"

namespace megalith {

constexpr int64_t accumulator_size(Element element) { return element == Element::float64 ? 8 : 4; }

// partial = values; partial += values; values = partial, rounded to nearest even. `count` elements each.
void begin_sum(Element element, void* partial, const void* values, int64_t count);
void add_to_sum(Element element, void* partial, const void* values, int64_t count);
void end_sum(Element element, void* values, const void* partial, int64_t count);

// Every destination becomes the sum of all sources. A destination may be a source; otherwise nothing overlaps.
void sum(Element element, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
         int64_t count);

// float32 to bf16, to nearest even, and back.
void pack_bf16(uint16_t* packed, const float* values, int64_t count);
void unpack_bf16(float* values, const uint16_t* packed, int64_t count);

}  // namespace megalith

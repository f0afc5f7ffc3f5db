// Sums over the buffers of several ranks, element by element, always in the order given. Partial sums of 16-bit elements
// are wider: float for all types except double.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/buffer.h"

namespace megalith {

constexpr int64_t accumulator_size(Element element) { return element == Element::float64 ? 8 : 4; }

// Assigns partial = values; partial += values; values = partial, rounded to nearest even. Each has `count` elements.
void begin_sum(Element element, void* partial, const void* values, int64_t count);
void add_to_sum(Element element, void* partial, const void* values, int64_t count);
void end_sum(Element element, void* values, const void* partial, int64_t count);

// Writes the sum of all sources to every destination. A destination may be a source. Buffers must not overlap otherwise.
void sum(Element element, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
         int64_t count);

// Converts float32 to bf16, rounded to nearest even, and back.
void pack_bf16(uint16_t* packed, const float* values, int64_t count);
void unpack_bf16(float* values, const uint16_t* packed, int64_t count);

}  // namespace megalith

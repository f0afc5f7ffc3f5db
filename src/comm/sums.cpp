#include "comm/sums.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/vectorised.h"

namespace megalith {
namespace {

#define ALWAYS_INLINE inline __attribute__((always_inline))

struct Bf16 {
  static ALWAYS_INLINE float widen(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  static ALWAYS_INLINE uint16_t narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40u;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
};

struct Fp16 {
  // Multiplying by 2^112 corrects the bias of the exponent. The product is exact, also for subnormal numbers.
  static ALWAYS_INLINE float widen(uint16_t bits) {
    const uint32_t magnitude = bits & 0x7fffu;
    const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
    const uint32_t special = scaled | 0x7f800000u;  // infinity and NaN keep their mantissa
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    return std::bit_cast<float>((magnitude >= 0x7c00u ? special : scaled) | sign);
  }
  static ALWAYS_INLINE uint16_t narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & 0x7fffffffu;
    // The last bit that is kept decides ties. An overflow of the mantissa carries into the exponent, up to infinity.
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Adding 0.5 makes the addition round a subnormal result at the right bit.
    const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    const uint32_t sign = (bits >> 16) & 0x8000u;
    return static_cast<uint16_t>((magnitude >= 0x47800000u ? special : finite) | sign);
  }
};

// `out` may be `a` or `b`: no iteration reads what another iteration writes.
MEGALITH_VECTORISED void add_floats(float* out, const float* a, const float* b, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) out[i] = a[i] + b[i];
}

MEGALITH_VECTORISED void add_doubles(double* out, const double* a, const double* b, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) out[i] = a[i] + b[i];
}

MEGALITH_VECTORISED void widen_bf16(float* out, const uint16_t* in, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) out[i] = Bf16::widen(in[i]);
}

MEGALITH_VECTORISED void widen_fp16(float* out, const uint16_t* in, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) out[i] = Fp16::widen(in[i]);
}

MEGALITH_VECTORISED void add_bf16(float* sum, const uint16_t* in, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) sum[i] += Bf16::widen(in[i]);
}

MEGALITH_VECTORISED void add_fp16(float* sum, const uint16_t* in, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) sum[i] += Fp16::widen(in[i]);
}

MEGALITH_VECTORISED void narrow_bf16(uint16_t* out, const float* in, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) out[i] = Bf16::narrow(in[i]);
}

MEGALITH_VECTORISED void narrow_fp16(uint16_t* out, const float* in, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) out[i] = Fp16::narrow(in[i]);
}

// A block of partial sums fits into the first-level cache.
constexpr int64_t kBlock = 16 << 10;  // bytes of partial sums

template <class Float, auto add>
void sum_block(std::span<const std::byte* const> sources, int64_t at, std::byte* out, int64_t count) {
  alignas(64) std::byte held[kBlock];
  Float* const partial = reinterpret_cast<Float*>(held);
  Float* const result = reinterpret_cast<Float*>(out);
  const auto values = [&](size_t i) { return reinterpret_cast<const Float*>(sources[i] + at); };
  if (sources.size() == 1) {
    std::memmove(result, values(0), static_cast<size_t>(count) * sizeof(Float));
    return;
  }
  // Only the last addition writes to `out`, which may be one of the sources.
  const size_t last = sources.size() - 1;
  const Float* so_far = values(0);
  for (size_t i = 1; i <= last; i++) {
    Float* to = i == last ? result : partial;
    add(to, so_far, values(i), count);
    so_far = partial;
  }
}

void sum_half_block(Element element, std::span<const std::byte* const> sources, int64_t at, std::byte* out,
                    int64_t count) {
  alignas(64) std::byte partial[kBlock];
  begin_sum(element, partial, sources[0] + at, count);
  for (size_t i = 1; i < sources.size(); i++) add_to_sum(element, partial, sources[i] + at, count);
  end_sum(element, out, partial, count);
}

}  // namespace

void begin_sum(Element element, void* partial, const void* values, int64_t count) {
  switch (element) {
    case Element::bfloat16:
      return widen_bf16(static_cast<float*>(partial), static_cast<const uint16_t*>(values), count);
    case Element::float16:
      return widen_fp16(static_cast<float*>(partial), static_cast<const uint16_t*>(values), count);
    default: std::memcpy(partial, values, static_cast<size_t>(count * size_of(element)));
  }
}

void add_to_sum(Element element, void* partial, const void* values, int64_t count) {
  switch (element) {
    case Element::bfloat16:
      return add_bf16(static_cast<float*>(partial), static_cast<const uint16_t*>(values), count);
    case Element::float16:
      return add_fp16(static_cast<float*>(partial), static_cast<const uint16_t*>(values), count);
    case Element::float32: {
      float* so_far = static_cast<float*>(partial);
      return add_floats(so_far, so_far, static_cast<const float*>(values), count);
    }
    case Element::float64: {
      double* so_far = static_cast<double*>(partial);
      return add_doubles(so_far, so_far, static_cast<const double*>(values), count);
    }
    case Element::byte: break;
  }
  MEGALITH_ASSERT(false, "bytes have no sum");
}

void end_sum(Element element, void* values, const void* partial, int64_t count) {
  switch (element) {
    case Element::bfloat16:
      return narrow_bf16(static_cast<uint16_t*>(values), static_cast<const float*>(partial), count);
    case Element::float16:
      return narrow_fp16(static_cast<uint16_t*>(values), static_cast<const float*>(partial), count);
    default: std::memcpy(values, partial, static_cast<size_t>(count * size_of(element)));
  }
}

void sum(Element element, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
         int64_t count) {
  const int64_t block = kBlock / accumulator_size(element), width = size_of(element);
  for (int64_t first = 0; first < count; first += block) {
    const int64_t n = std::min(block, count - first), at = first * width;
    std::byte* const out = destinations[0] + at;
    switch (element) {
      case Element::float32: sum_block<float, add_floats>(sources, at, out, n); break;
      case Element::float64: sum_block<double, add_doubles>(sources, at, out, n); break;
      case Element::bfloat16:
      case Element::float16: sum_half_block(element, sources, at, out, n); break;
      case Element::byte: MEGALITH_ASSERT(false, "bytes have no sum");
    }
    for (std::byte* other : destinations.subspan(1)) std::memcpy(other + at, out, static_cast<size_t>(n * width));
  }
}

void pack_bf16(uint16_t* packed, const float* values, int64_t count) { narrow_bf16(packed, values, count); }
void unpack_bf16(float* values, const uint16_t* packed, int64_t count) { widen_bf16(values, packed, count); }

}  // namespace megalith

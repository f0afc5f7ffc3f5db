// This file is compiled without fused multiply-adds (CMakeLists.txt). Every level then rounds additions, products,
// quotients and square roots in the same way, so all levels give the same bits. Logarithm, sine and cosine are Taylor
// polynomials. They have enough terms that the truncation error is below the rounding of float32.
#include "base/normals.h"

#include <bit>

#include "base/philox_blocks.h"

namespace megalith {
namespace {

constexpr int64_t kBlocks = 64;          // Philox blocks computed at once
constexpr int64_t kGroup = 4 * kBlocks;  // elements made at once

#define MEGALITH_INLINE inline __attribute__((always_inline))

// ln u for u in (0, 1]. u = m * 2^exponent with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh((m - 1) / (m + 1)).
MEGALITH_INLINE float natural_logarithm(float u) {
  constexpr uint32_t kRootOfHalf = 0x3F3504F3u;
  const uint32_t shifted = std::bit_cast<uint32_t>(u) - kRootOfHalf;
  const auto exponent = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007FFFFFu) + kRootOfHalf);
  const float s = (m - 1.0f) / (m + 1.0f), q = s * s;
  const float series = q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9))));
  return exponent * 0.69314718f + (2.0f * s + 2.0f * s * series);
}

// Cosine and sine of t turns, t in [0, 1). The polynomials take the distance to the nearest quarter turn, which float32
// represents exactly.
MEGALITH_INLINE void cosine_and_sine(float t, float& cosine, float& sine) {
  const auto quarter = static_cast<int32_t>(4.0f * t + 0.5f);
  const float x = (4.0f * t - static_cast<float>(quarter)) * 1.5707963f, q = x * x;
  const float s =
      x + x * q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362880))));
  const float c = 1.0f + q * (-1.0f / 2 + q * (1.0f / 24 + q * (-1.0f / 720 + q * (1.0f / 40320 - q * (1.0f / 3628800)))));
  const bool odd = (quarter & 1) != 0;
  const float first = odd ? s : c, second = odd ? c : s;
  const uint32_t first_sign = static_cast<uint32_t>((quarter + 1) & 2) << 30,
                 second_sign = static_cast<uint32_t>(quarter & 2) << 30;
  cosine = std::bit_cast<float>(std::bit_cast<uint32_t>(first) ^ first_sign);
  sine = std::bit_cast<float>(std::bit_cast<uint32_t>(second) ^ second_sign);
}

MEGALITH_INLINE void pair_of(uint32_t for_radius, uint32_t for_angle, float& a, float& b) {
  const float u = (static_cast<float>(static_cast<int32_t>(for_radius >> 8)) + 0.5f) * (1.0f / 16777216.0f);  // never 0
  const float radius = __builtin_sqrtf(-2.0f * natural_logarithm(u));
  float cosine, sine;
  cosine_and_sine(static_cast<float>(static_cast<int32_t>(for_angle >> 8)) * (1.0f / 16777216.0f), cosine, sine);
  a = radius * cosine;
  b = radius * sine;
}

MEGALITH_INLINE void group(uint64_t counter, uint64_t stream, uint64_t key, float* __restrict out) {
  uint32_t words[4][kBlocks];
  philox_blocks(counter, stream, key, words);
  float values[4][kBlocks];
  for (int pair = 0; pair < 4; pair += 2)
    for (int64_t b = 0; b < kBlocks; b++) pair_of(words[pair][b], words[pair + 1][b], values[pair][b], values[pair + 1][b]);
  for (int64_t b = 0; b < kBlocks; b++)
    for (int64_t w = 0; w < 4; w++) out[4 * b + w] = values[w][b];
}

using Group = void (*)(uint64_t counter, uint64_t stream, uint64_t key, float* out);
void plain(uint64_t counter, uint64_t stream, uint64_t key, float* out) { group(counter, stream, key, out); }
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target("arch=x86-64-v3"))) void v3(uint64_t counter, uint64_t stream, uint64_t key, float* out) {
  group(counter, stream, key, out);
}
__attribute__((target("arch=x86-64-v4"))) void v4(uint64_t counter, uint64_t stream, uint64_t key, float* out) {
  group(counter, stream, key, out);
}
#else
constexpr Group v3 = plain, v4 = plain;
#endif

}  // namespace

VectorLevel best_vector_level() {
#if defined(__x86_64__) && !defined(__clang__)
  if (__builtin_cpu_supports("x86-64-v4")) return VectorLevel::v4;
  if (__builtin_cpu_supports("x86-64-v3")) return VectorLevel::v3;
#endif
  return VectorLevel::plain;
}

void fill_normals(const Philox& random, uint64_t begin, std::span<float> out, VectorLevel level) {
  const Group make = level == VectorLevel::v4 ? v4 : level == VectorLevel::v3 ? v3 : plain;
  fill_by_groups<kGroup>(static_cast<int64_t>(begin), out, [&](int64_t first, float* into) {
    make(static_cast<uint64_t>(first / 4), random.stream(), random.key(), into);
  });
}

}  // namespace megalith

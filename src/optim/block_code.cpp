#include "optim/block_code.h"

#include <algorithm>
#include <array>
#include <bit>

#include "optim/kernel.h"

namespace megalith {
namespace {

// With bits() of a float32: bits(y) = 4 (bits(code) - kShift). Code 256 would be y = 1.
constexpr uint32_t kShift = 413u << 21;
constexpr float kLast = 4;             // smallest code: codes 1 to 3 are not used, they would be over an octave apart
constexpr float kLeast = 0x1p-24f;     // y of kLast
constexpr float kTiny = 1e-35f;

inline __attribute__((always_inline)) float number_of(float code) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(code) - kShift) << 2);
}
inline __attribute__((always_inline)) float code_of(float y) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(y) >> 2) + kShift);
}

MEGALITH_KERNEL float largest(int64_t n, const float* __restrict x) {
  uint32_t most = 0;  // the bits of positive floats, read as integers, have the same order
  for (int64_t i = 0; i < n; i++) most = std::max(most, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFu);
  return std::bit_cast<float>(most);
}

MEGALITH_KERNEL void encode_positive(int64_t n, const float* __restrict x, const uint16_t* __restrict random, float inverse,
                                     uint8_t* __restrict codes) {
  for (int64_t i = 0; i < n; i++) {
    const float y = std::max(x[i] * inverse, kLeast);
    const float up = (static_cast<float>(random[i]) + 0.5f) * 0x1p-16f;
    const int32_t code = std::min(static_cast<int32_t>(code_of(y) + up), 255);
    codes[i] = static_cast<uint8_t>(x[i] > 0 ? code : 0);
  }
}

MEGALITH_KERNEL void encode_signed(int64_t n, const float* __restrict x, const uint16_t* __restrict random, float inverse,
                                   uint8_t* __restrict codes) {
  for (int64_t i = 0; i < n; i++) {
    const float y = __builtin_fabsf(x[i]) * inverse;
    const float up = (static_cast<float>(random[i]) + 0.5f) * 0x1p-16f;
    const float part = y * (1 / kLeast);  // y relative to the last step
    const int32_t code = std::min(static_cast<int32_t>(code_of(std::max(y, kLeast)) + up), 127);
    const int32_t small = part + up >= 1 ? static_cast<int32_t>(kLast) : 0;
    const int32_t sign = x[i] < 0 ? 128 : 0;
    codes[i] = static_cast<uint8_t>((part < 1 ? small : code) | sign);
  }
}

MEGALITH_KERNEL void decode_positive(int64_t n, const uint8_t* __restrict codes, float scale, float* __restrict x) {
  for (int64_t i = 0; i < n; i++) {
    const int32_t code = codes[i];
    const float y = number_of(static_cast<float>(code)) * scale;
    x[i] = code == 0 ? 0.0f : y;
  }
}

MEGALITH_KERNEL void decode_signed(int64_t n, const uint8_t* __restrict codes, float scale, float* __restrict x) {
  for (int64_t i = 0; i < n; i++) {
    const int32_t code = codes[i] & 127;
    const float y = number_of(static_cast<float>(code)) * scale;
    const float size = code == 0 ? 0.0f : y;
    x[i] = codes[i] > 127 ? -size : size;
  }
}

constexpr int64_t kLongest = 256;
constexpr auto kHalves = [] {
  std::array<uint16_t, kLongest> halves{};
  halves.fill(0x8000);
  return halves;
}();

}  // namespace

float encode_block(std::span<const float> values, bool negative, std::span<const uint16_t> random, uint8_t* codes) {
  const int64_t n = std::ssize(values);
  const float most = largest(n, values.data());
  if (!(most >= kTiny)) {
    std::fill(codes, codes + n, uint8_t{0});
    return 0;
  }
  const float scale = most / number_of(negative ? 127.0f : 255.0f);
  const uint16_t* bits = random.empty() ? kHalves.data() : random.data();
  if (negative) encode_signed(n, values.data(), bits, 1 / scale, codes);
  else encode_positive(n, values.data(), bits, 1 / scale, codes);
  return scale;
}

void decode_block(std::span<const uint8_t> codes, bool negative, float scale, float* values) {
  if (negative) decode_signed(std::ssize(codes), codes.data(), scale, values);
  else decode_positive(std::ssize(codes), codes.data(), scale, values);
}

}  // namespace megalith

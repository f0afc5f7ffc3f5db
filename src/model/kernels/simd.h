// Functions that our kernels' vectorised loops (base/vectorised.h) share.
#pragma once
#include <bit>
#include <cstdint>

#include "base/vectorised.h"

namespace megalith::kernels {

// Returns e^x in float32, within about 2 units in the last place over [-87, 88]. Below that it is 0, so that masked scores
// become 0. It has no branches, so that loops over it vectorise. (The library's expf does not vectorise.)
inline __attribute__((always_inline)) float exp_fast(float x) {
  float clamped = x < -87.3f ? -87.3f : (x > 88.7f ? 88.7f : x);
  float n = __builtin_rintf(clamped * 1.44269504088896341f);
  float r = clamped - n * 0.693359375f;  // ln 2 in two parts: the product stays exact
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;            // minimax polynomial on [-ln2/2, ln2/2]
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  float scale = std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
  return x < -87.3f ? 0.0f : p * scale;
}

inline __attribute__((always_inline)) float sigmoid_fast(float x) { return 1.0f / (1.0f + exp_fast(-x)); }

}  // namespace megalith::kernels

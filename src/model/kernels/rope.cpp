#include "model/kernels/rope.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <vector>

namespace megalith::kernels {
namespace {

// One head of one row: pairs (a, b) turned by the angle whose cosine and sine are given.
template <class Scalar>
void rotate(Scalar* a, Scalar* b, const float* cosine, const float* sine, int64_t half) {
  using Wide = at::opmath_type<Scalar>;  // float32 for 16 bits; doubles stay doubles
  for (int64_t i = 0; i < half; i++) {
    Wide u = static_cast<Wide>(a[i]), v = static_cast<Wide>(b[i]);
    a[i] = static_cast<Scalar>(u * cosine[i] - v * sine[i]);
    b[i] = static_cast<Scalar>(v * cosine[i] + u * sine[i]);
  }
}

// Llama 3's rule in float32, term by term as Hugging Face computes it.
float stretched(float frequency, const RopeScaling& s) {
  constexpr float circle = 6.283185307179586f;
  const auto factor = static_cast<float>(s.factor), low = static_cast<float>(s.low), high = static_cast<float>(s.high),
             context = static_cast<float>(s.original_context);
  const float wavelength = circle / frequency;
  if (wavelength > context / low) return frequency / factor;
  if (wavelength < context / high) return frequency;
  const float kept = (context / wavelength - low) / (high - low);
  return (1 - kept) * frequency / factor + kept * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(const Rope& rope, int64_t head_dim) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < head_dim / 2; i++) {
    float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    float frequency = 1.0f / std::pow(static_cast<float>(rope.theta), exponent);
    frequencies.push_back(rope.scaling.factor > 0 ? stretched(frequency, rope.scaling) : frequency);
  }
  return frequencies;
}

void rope_in_place(at::Tensor& x_NX, int64_t heads, int64_t head_dim, int64_t length, int64_t first_position,
                   const Rope& rope, bool backward) {
  const int64_t half = head_dim / 2, rows = x_NX.size(0), width = x_NX.size(1);
  // The angle is a float32 product of a float32 frequency, as Hugging Face computes it: at large positions the
  // rounding shows in the logits.
  const std::vector<float> frequencies = rope_frequencies(rope, head_dim);
  std::vector<float> cosine(length * half), sine(length * half);
  for (int64_t i = 0; i < half; i++) {
    for (int64_t t = 0; t < length; t++) {
      float angle = static_cast<float>(first_position + t) * frequencies[i];
      cosine[t * half + i] = std::cos(angle);
      sine[t * half + i] = backward ? -std::sin(angle) : std::sin(angle);
    }
  }
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x_NX.scalar_type(), "rope", [&] {
    scalar_t* x = x_NX.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const float *c = &cosine[r % length * half], *s = &sine[r % length * half];
        for (int64_t h = 0; h < heads; h++) {
          scalar_t* first = x + r * width + h * head_dim;
          rotate(first, first + half, c, s, half);
        }
      }
    });
  });
}

}  // namespace megalith::kernels

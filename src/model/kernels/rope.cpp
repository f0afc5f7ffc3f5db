#include "model/kernels/rope.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"

namespace megalith::kernels {
namespace {

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

struct RopeTable {
  std::vector<float> cosine, sine;  // positions x D/2
  int64_t positions = 0;
};

// The angle is the float32 product of a position and a float32 frequency, as in Hugging Face. At large positions its
// rounding is visible in the logits.
std::shared_ptr<const RopeTable> make_table(const Rope& rope, int64_t head_dim, int64_t positions) {
  const int64_t half = head_dim / 2;
  const std::vector<float> frequencies = rope_frequencies(rope, head_dim);
  auto table = std::make_shared<RopeTable>();
  table->positions = positions;
  table->cosine.resize(static_cast<size_t>(positions * half));
  table->sine.resize(table->cosine.size());
  for (int64_t i = 0; i < half; i++) {
    for (int64_t t = 0; t < positions; t++) {
      float angle = static_cast<float>(t) * frequencies[i];
      table->cosine[t * half + i] = std::cos(angle);
      table->sine[t * half + i] = std::sin(angle);
    }
  }
  return table;
}

// Angles depend only on the arguments, so all layers share one table. If a call needs more positions than the table has, a
// larger table replaces it.
std::shared_ptr<const RopeTable> table_for(const Rope& rope, int64_t head_dim, int64_t positions) {
  static std::mutex mutex;
  static std::map<std::vector<double>, std::shared_ptr<const RopeTable>> tables;
  const RopeScaling& scaling = rope.scaling;
  std::scoped_lock lock(mutex);
  std::shared_ptr<const RopeTable>& table =
      tables[{rope.theta, static_cast<double>(head_dim), scaling.factor, scaling.low, scaling.high,
              static_cast<double>(scaling.original_context)}];
  if (!table || table->positions < positions)
    table = make_table(rope, head_dim, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(positions))));
  return table;
}

// Rotates the pairs (a, b) of one head of one row by the angle with this cosine and sine. `sign` -1 rotates back.
template <class Scalar>
void rotate(Scalar* a, Scalar* b, const float* cosine, const float* sine, float sign, int64_t half) {
  using Wide = at::opmath_type<Scalar>;  // float32 for 16 bits; doubles stay doubles
  for (int64_t i = 0; i < half; i++) {
    Wide u = static_cast<Wide>(a[i]), v = static_cast<Wide>(b[i]), s = sign * sine[i];
    a[i] = static_cast<Scalar>(u * cosine[i] - v * s);
    b[i] = static_cast<Scalar>(v * cosine[i] + u * s);
  }
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

void rope_in_place(at::Tensor& x_NX, int64_t heads, int64_t head_dim, std::span<const int64_t> positions,
                   const Rope& rope, bool backward) {
  const int64_t half = head_dim / 2, rows = x_NX.size(0), width = x_NX.size(1);
  MEGALITH_ASSERT(std::ssize(positions) == rows, "{} positions for {} rows", positions.size(), rows);
  if (rows == 0) return;
  const auto table = table_for(rope, head_dim, 1 + *std::ranges::max_element(positions));
  const float sign = backward ? -1.0f : 1.0f;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x_NX.scalar_type(), "rope", [&] {
    scalar_t* x = x_NX.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const float *c = &table->cosine[positions[r] * half], *s = &table->sine[positions[r] * half];
        for (int64_t h = 0; h < heads; h++) {
          scalar_t* first = x + r * width + h * head_dim;
          rotate(first, first + half, c, s, sign, half);
        }
      }
    });
  });
}

}  // namespace megalith::kernels

#include <vector>

#include "optim/kernel.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

constexpr int64_t kLanes = 16;  // partial sums per chunk; another number, like another chunk size, changes the result

// The product of two floats is exact in double. So only the order of the sums matters, and it is fixed.
MEGALITH_KERNEL double chunk_sum(const float* values, int64_t n) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t k = 0; k < kLanes; k++) {
      const double x = values[i + k];
      lanes[k] += x * x;
    }
  for (int64_t k = 0; i + k < n; k++) lanes[k] += static_cast<double>(values[i + k]) * values[i + k];
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t k = 0; k < width; k++) lanes[k] += lanes[k + width];
  return lanes[0];
}

}  // namespace

double sum_of_squares(std::span<const float> values) {
  constexpr int64_t kChunk = 65536;
  const int64_t n = std::ssize(values);
  std::vector<double> partial(static_cast<size_t>((n + kChunk - 1) / kChunk));
  for_chunks(n, kChunk, [&](int64_t begin, int64_t end) {
    partial[static_cast<size_t>(begin / kChunk)] = chunk_sum(values.data() + begin, end - begin);
  });
  double sum = 0;
  for (double p : partial) sum += p;
  return sum;
}

}  // namespace megalith

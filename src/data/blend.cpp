#include "data/blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/philox.h"

namespace megalith {
namespace {

constexpr uint64_t kStride =
    0x9E3779B9;  // 2^32 / golden ratio, odd: 2^32 steps visit every point once

// Returns the sum of floor((a i + b) / m) over i in [0, n), modulo 2^64: differences of two such sums are exact. It
// counts the lattice points under a line. Each round exchanges the axes, as Euclid's algorithm exchanges its numbers.
uint64_t floor_sum(uint64_t n, uint64_t m, uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  for (;;) {
    sum += (n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n) * (a / m) + n * (b / m);
    a %= m;
    b %= m;
    const unsigned __int128 top = static_cast<unsigned __int128>(a) * n + b;
    if (top < m) return sum;
    n = static_cast<uint64_t>(top / m);
    b = static_cast<uint64_t>(top % m);
    std::swap(a, m);
  }
}

}  // namespace

Blend::Blend(std::span<const double> weights, uint64_t seed)
    : start_(Philox(seed, RandomUse::blend, 0).block(0)[0]) {
  MEGALITH_ASSERT(!weights.empty(), "a blend of nothing");
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  uint64_t before = 0;
  for (double weight : weights) {
    sum += weight;
    auto end = static_cast<uint64_t>(std::llround(sum / total * static_cast<double>(kCircle)));
    end = std::min(end, kCircle);
    MEGALITH_ASSERT(end > before, "weight {} of {}", weight, total);
    ends_.push_back(before = end);
  }
  ends_.back() = kCircle;  // corrects the rounding of the sum
}

// x mod m < end if and only if floor(x / m) and floor((x + m - end) / m) are equal.
uint64_t Blend::before(uint64_t positions, uint64_t end) const {
  return positions + floor_sum(positions, kCircle, kStride, start_) -
         floor_sum(positions, kCircle, kStride, start_ + kCircle - end);
}

int64_t Blend::drawn(size_t set, int64_t position) const {
  const auto laps = static_cast<uint64_t>(position) / kCircle,
             rest = static_cast<uint64_t>(position) % kCircle;
  const uint64_t begin = set == 0 ? 0 : ends_[set - 1], end = ends_[set];
  return static_cast<int64_t>(laps * (end - begin) + before(rest, end) - before(rest, begin));
}

Blend::Place Blend::at(int64_t position) const {
  MEGALITH_ASSERT(position >= 0, "position {}", position);
  const uint64_t point = (static_cast<uint64_t>(position) * kStride + start_) % kCircle;
  const auto set = static_cast<size_t>(std::ranges::upper_bound(ends_, point) - ends_.begin());
  return {set, drawn(set, position)};
}

}  // namespace megalith

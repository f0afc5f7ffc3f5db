#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace megalith {
namespace {

// The finaliser of splitmix64: every bit of the input affects every bit of the output.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t key)
    : n_(n), half_bits_(std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2)) {
  MEGALITH_ASSERT(n > 0 && n <= kLargest, "a permutation of {}", n);
  for (uint64_t& round_key : round_keys_) round_key = mix(key += 0x9E3779B97F4A7C15ull);
}

uint64_t Permutation::round_value(int round, uint64_t half) const {
  return mix(round_keys_[static_cast<size_t>(round)] ^ half * 0xD6E8FEB86659FD93ull) >> (64 - half_bits_);
}

uint64_t Permutation::operator()(uint64_t index) const {
  MEGALITH_ASSERT(index < n_, "{} of {}", index, n_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = index >> half_bits_, right = index & mask;
    for (int round = 0; round < kRounds; round++) {
      uint64_t next = left ^ round_value(round, right);
      left = right;
      right = next;
    }
    index = left << half_bits_ | right;
  } while (index >= n_);
  return index;
}

uint64_t Permutation::inverse(uint64_t image) const {
  MEGALITH_ASSERT(image < n_, "{} of {}", image, n_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = image >> half_bits_, right = image & mask;
    for (int round = kRounds - 1; round >= 0; round--) {
      uint64_t before = right ^ round_value(round, left);
      right = left;
      left = before;
    }
    image = left << half_bits_ | right;
  } while (image >= n_);
  return image;
}

}  // namespace megalith

// Counter-based random numbers. A number depends only on (seed, use, item, step, index), never on order, thread or layout.
// The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once
#include <array>
#include <cstdint>

namespace megalith {

// The purpose of a stream of numbers. It is part of the key, so two uses never share numbers. Runs resumed from a
// checkpoint rely on these values: append new ones, never renumber.
enum class RandomUse : uint32_t {
  initial_weights = 1,
  sample_order = 2,
  masking = 3,
  prefix_length = 4,
  embedding_dropout = 5,
  residual_dropout = 6,
  attention_dropout = 7,
  sampling = 8,
  stochastic_rounding = 9,
  blend = 10,
  curriculum = 11,
  curriculum_order = 12,  // used by earlier versions only
  token_dropping = 13,
  reshape_offset = 14,
  router_noise = 15,
  router_lots = 16,
  router_jitter = 17,
  spans = 18,
  test = 1000,
};

class Philox {
 public:
  // `item` separates streams of one use (a parameter, a layer's dropout site, an epoch).
  Philox(uint64_t seed, RandomUse use, uint64_t item, uint64_t step = 0)
      : key_{mix(seed ^ mix(static_cast<uint64_t>(use) << 32 | 0x9E37u))},
        stream_(mix(item * 0x9E3779B97F4A7C15ull + step)) {}

  // Four independent 32-bit numbers. Blocks may be computed in any order and on any thread.
  std::array<uint32_t, 4> block(uint64_t index) const { return philox4x32(index, stream_, key_); }

  // The Philox function: from counter (low, high) and key to four numbers.
  static std::array<uint32_t, 4> philox4x32(uint64_t low, uint64_t high, uint64_t key) {
    uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
    uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; round++) {
      uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0, p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
      uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
  }

  // The inputs of block(index) besides the index, for loops that compute many blocks at once.
  uint64_t key() const { return key_; }
  uint64_t stream() const { return stream_; }

  // The index-th 32-bit number of the stream: lane index % 4 of block index / 4.
  uint32_t bits(uint64_t index) const { return block(index / 4)[index % 4]; }

  // Uniform in [0, 1), 24 bits.
  float uniform(uint64_t index) const { return to_uniform(bits(index)); }
  static float to_uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f); }

  // Uniform in [0, n), n > 0. The bias is negligible (64-bit multiply).
  uint64_t below(uint64_t index, uint64_t n) const {
    auto b = block(index);
    uint64_t wide = static_cast<uint64_t>(b[0]) << 32 | b[1];
    return static_cast<uint64_t>(static_cast<unsigned __int128>(wide) * n >> 64);
  }

 private:
  static constexpr uint64_t mix(uint64_t z) {  // splitmix64's finaliser: spreads small keys over 64 bits
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  uint64_t key_;
  uint64_t stream_;
};

}  // namespace megalith

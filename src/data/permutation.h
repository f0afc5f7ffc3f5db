// A keyed shuffle of [0, n) that is never stored. Any element can be computed alone, forwards and backwards.
#pragma once
#include <array>
#include <cstdint>

namespace megalith {

// A balanced Feistel network on the next even number of bits, applied repeatedly until the value is inside [0, n). It
// needs at most four tries on average, as the network's range is at most 4 n.
class Permutation {
 public:
  static constexpr uint64_t kLargest = uint64_t{1} << 62;  // largest n

  Permutation(uint64_t n, uint64_t key);
  uint64_t size() const { return n_; }
  uint64_t operator()(uint64_t index) const;  // position that `index` moves to
  uint64_t inverse(uint64_t image) const;     // index that moves to `image`

 private:
  static constexpr int kRounds = 10;
  uint64_t round_value(int round, uint64_t half) const;
  uint64_t n_;
  int half_bits_;
  std::array<uint64_t, kRounds> round_keys_;
};

}  // namespace megalith

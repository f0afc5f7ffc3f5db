// A keyed shuffle of [0, n) that is never stored: any element on its own, forwards and backwards.
#pragma once
#include <array>
#include <cstdint>

namespace megalith {

// A balanced Feistel network on the next even number of bits, walked until the value falls inside [0, n): at
// most four tries on average, since the network's range is at most 4 n.
class Permutation {
 public:
  static constexpr uint64_t kLargest = uint64_t{1} << 62;  // n at most

  Permutation(uint64_t n, uint64_t key);
  uint64_t size() const { return n_; }
  uint64_t operator()(uint64_t index) const;  // where `index` goes
  uint64_t inverse(uint64_t image) const;     // what went to `image`

 private:
  static constexpr int kRounds = 10;
  uint64_t round_value(int round, uint64_t half) const;
  uint64_t n_;
  int half_bits_;
  std::array<uint64_t, kRounds> round_keys_;
};

}  // namespace megalith

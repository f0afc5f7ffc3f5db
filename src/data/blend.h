// Which data set each position of a run reads from, where several are blended by weight: a function of
// (seed, position) without state, so that any position is as near as the first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

// Position p stands on a circle at the fraction p / golden ratio (+ a start that the seed decides), and each
// data set owns an arc as long as its share. Points of this sequence spread more evenly than any random ones:
// a window of n positions is off a share by about log(n) / n. How many of the positions before p belong to an
// arc is a sum of floors, which Euclid's algorithm gives in a few dozen steps.
class Blend {
 public:
  // The smallest share that can be kept to; a set with less is never drawn from.
  static constexpr double kSmallestShare = 1e-6;

  // Weights above 0, in any unit: shares are weight / sum, each at least kSmallestShare.
  Blend(std::span<const double> weights, uint64_t seed);

  struct Place {
    size_t set;
    int64_t index;  // how many positions before it read from the same set
    bool operator==(const Place&) const = default;
  };
  Place at(int64_t position) const;
  // How many of the positions [0, position) read from `set`.
  int64_t drawn(size_t set, int64_t position) const;
  size_t sets() const { return ends_.size(); }

 private:
  // How many of the `positions` (at most kCircle) from 0 on stand before `end` on the circle.
  uint64_t before(uint64_t positions, uint64_t end) const;

  static constexpr uint64_t kCircle = uint64_t{1} << 32;
  std::vector<uint64_t> ends_;  // of the arcs; the last is kCircle
  uint64_t start_;
};

}  // namespace megalith

// Chooses the data set that each position of a run reads from, if several are blended by weight. It is a function of
// (seed, position) without state, so any position costs the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

// Position p is a point on a circle, at the fraction p / golden ratio (+ a start that depends on the seed). Each data
// set owns an arc as long as its share. The points of this sequence are more evenly distributed than random points. In a
// window of n positions, the error of a share is about log(n) / n. The number of positions before p on an arc is a sum
// of floors. Euclid's algorithm computes it in a few dozen steps.
class Blend {
 public:
  // The smallest share that is exact enough; a data set with less would never be drawn.
  static constexpr double kSmallestShare = 1e-6;

  // Weights are above 0, in any unit. Shares are weight / sum, each at least kSmallestShare.
  Blend(std::span<const double> weights, uint64_t seed);

  struct Place {
    size_t set;
    int64_t index;  // number of earlier positions that read from the same set
    bool operator==(const Place&) const = default;
  };
  Place at(int64_t position) const;
  // Number of positions in [0, position) that read from `set`.
  int64_t drawn(size_t set, int64_t position) const;
  size_t sets() const { return ends_.size(); }

 private:
  // Returns how many of the first `positions` positions (at most kCircle) are before `end` on the circle.
  uint64_t before(uint64_t positions, uint64_t end) const;

  static constexpr uint64_t kCircle = uint64_t{1} << 32;
  std::vector<uint64_t> ends_;  // ends of the arcs; the last is kCircle
  uint64_t start_;
};

}  // namespace megalith

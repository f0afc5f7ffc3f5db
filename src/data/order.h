// Which sample is trained on when: a function of (seed, position), so that resuming, another layout or
// another batch size needs no state but the number of samples consumed.
#pragma once
#include <cstdint>

namespace megalith {

struct EpochSample {
  int64_t epoch;   // from 0
  int64_t sample;  // in [0, samples)
  bool operator==(const EpochSample&) const = default;
};

// Every epoch is a fresh permutation: each sample exactly once. Batches run on across the end of an epoch, so
// that nothing is dropped: step s of batch B covers positions [s * B, (s + 1) * B).
class SampleOrder {
 public:
  SampleOrder(int64_t samples, uint64_t seed);
  EpochSample at(int64_t position) const;
  int64_t samples() const { return samples_; }

 private:
  int64_t samples_;
  uint64_t seed_;
};

}  // namespace megalith

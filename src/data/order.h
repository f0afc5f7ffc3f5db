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
  // `set` is the data set's number where several are blended: each has an order of its own.
  SampleOrder(int64_t samples, uint64_t seed, uint64_t set = 0);
  EpochSample at(int64_t position) const;
  int64_t samples() const { return samples_; }

 private:
  int64_t samples_;
  uint64_t seed_, set_;
};

}  // namespace megalith

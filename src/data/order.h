// The order of training samples: a function of (seed, position). So resuming, another layout or another batch size needs
// no state except the number of samples consumed.
#pragma once
#include <cstdint>

namespace megalith {

struct EpochSample {
  int64_t epoch;   // counted from 0
  int64_t sample;  // in [0, samples)
  bool operator==(const EpochSample&) const = default;
};

// Every epoch is a new permutation with each sample exactly once. Batches continue across the end of an epoch, so that
// no sample is dropped: step s of batch B covers positions [s * B, (s + 1) * B).
class SampleOrder {
 public:
  // `set` is the number of the data set if several are blended. Each has an order of its own.
  SampleOrder(int64_t samples, uint64_t seed, uint64_t set = 0);
  EpochSample at(int64_t position) const;
  int64_t samples() const { return samples_; }

 private:
  int64_t samples_;
  uint64_t seed_, set_;
};

}  // namespace megalith

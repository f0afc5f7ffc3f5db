#include "data/order.h"

#include "base/error.h"
#include "base/philox.h"
#include "data/permutation.h"

namespace megalith {

SampleOrder::SampleOrder(int64_t samples, uint64_t seed, uint64_t set)
    : samples_(samples), seed_(seed), set_(set) {
  MEGALITH_ASSERT(samples > 0, "an order of {} samples", samples);
}

EpochSample SampleOrder::at(int64_t position) const {
  MEGALITH_ASSERT(position >= 0, "position {}", position);
  const int64_t epoch = position / samples_, inside = position % samples_;
  auto bits = Philox(seed_, RandomUse::sample_order, static_cast<uint64_t>(epoch), set_).block(0);
  Permutation shuffle(static_cast<uint64_t>(samples_), static_cast<uint64_t>(bits[0]) << 32 | bits[1]);
  return {epoch, static_cast<int64_t>(shuffle(static_cast<uint64_t>(inside)))};
}

}  // namespace megalith

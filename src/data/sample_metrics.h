// How difficult a training sample is, from its tokens alone.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace megalith {

class SampleMetric {
 public:
  virtual ~SampleMetric() = default;
  // The values of samples [first, first + out.size()).
  virtual void compute(int64_t first, std::span<double> out) const = 0;
  virtual bool threaded() const { return true; }  // whether several threads may call it at once
};

// Names that make_token_metric knows:
//   length         tokens of the longest part of a document inside the sample
//   rarity         sum of -log(frequency) of its tokens in the training data, nats
//   length_rarity  the product of both
//   compression    bytes of its ids packed by zstd, divided by their bytes: text that repeats itself is low
std::span<const std::string_view> token_metrics();

// Borrows the data. Rarity reads all of it first, calling `progress(samples done)` now and then. Null for a name that
// is none of them.
std::unique_ptr<SampleMetric> make_token_metric(std::string_view name, const Dataset& data, int64_t vocab, int64_t threads,
                                                const std::function<void(int64_t)>& progress);

// Calls work(first, count) for samples [begin, samples) in chunks on several threads, and done(first, count) for each
// chunk in order afterwards; memory is bounded by a few chunks. Stops early, between chunks, when `stop` says so; false
// then.
bool for_samples(int64_t begin, int64_t samples, int64_t threads, const std::function<void(int64_t, int64_t)>& work,
                 const std::function<void(int64_t, int64_t)>& done, const std::function<bool()>& stop = {});

inline constexpr int64_t kSampleChunk = 512;  // samples of one call of `work`, at most

}  // namespace megalith

// How difficult a training sample is, from its tokens alone.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  virtual bool threaded() const { return true; }                    // whether several threads may call it at once
  virtual int64_t tokens_at_once() const { return kTokensAtOnce; }  // that a call should be about, so that it is short

  static constexpr int64_t kTokensAtOnce = 1 << 18;
};

// Names that make_token_metric knows:
//   length         tokens of the longest part of a document inside the sample
//   rarity         sum of -log(frequency) of its tokens in the training data, nats
//   length_rarity  the product of both
//   compression    bytes of its ids packed by zstd, divided by their bytes: text that repeats itself is low
std::span<const std::string_view> token_metrics();

// Samples [begin, end), gone through in chunks by several threads.
struct SampleWalk {
  int64_t begin, end, chunk, threads;
  std::function<bool()> stop = {};  // asked between rounds of a chunk a thread
};

// Chunks of about so many tokens, and of less where that gives every thread one. What is held does not grow with the
// length of a sequence.
SampleWalk walk_of(const Dataset& data, int64_t begin, int64_t threads, int64_t tokens_at_once);

struct SampleChunk {
  int64_t first, count;
  int64_t thread;  // that works on it, from 0
};

// Calls `work` for each chunk, and `done` for each in order afterwards. False where it was stopped.
bool for_samples(const SampleWalk& walk, const std::function<void(const SampleChunk&)>& work,
                 const std::function<void(const SampleChunk&)>& done);

// -log of each id's share of all training tokens, which are read once, `progress(samples done)` being called now and then;
// none where `stop` ended it. Takes 8 bytes a token of the vocabulary and thread.
std::optional<std::vector<double>> token_costs(const Dataset& data, int64_t vocab, int64_t threads,
                                               const std::function<void(int64_t)>& progress,
                                               const std::function<bool()>& stop);

// Borrows the data, and what `costs` gives, token_costs(), which is asked for where the metric needs it. Null for a name
// that is none of them.
std::unique_ptr<SampleMetric> make_token_metric(std::string_view name, const Dataset& data, int64_t vocab,
                                                const std::function<std::span<const double>()>& costs);

}  // namespace megalith

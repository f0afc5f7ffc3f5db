// Computes how difficult a training sample is, from its tokens alone.
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
  // Computes the values of samples [first, first + out.size()).
  virtual void compute(int64_t first, std::span<double> out) const = 0;
  virtual bool threaded() const { return true; }                    // true if several threads may call it at once
  virtual int64_t tokens_at_once() const { return kTokensAtOnce; }  // tokens that one call should process, so that it is
                                                                    // short

  static constexpr int64_t kTokensAtOnce = 1 << 18;
};

// Returns the names that make_token_metric knows:
//   length         tokens of the longest part of a document inside the sample
//   rarity         sum of -log(frequency) of its tokens in the training data, nats
//   length_rarity  the product of both
//   compression    bytes of its ids packed by zstd, divided by their bytes: low for text that repeats itself
std::span<const std::string_view> token_metrics();

// Samples [begin, end), processed in chunks by several threads.
struct SampleWalk {
  int64_t begin, end, chunk, threads;
  std::function<bool()> stop = {};  // called between rounds; in a round each thread processes one chunk
};

// Makes chunks of about `tokens_at_once` tokens, or less if that gives every thread a chunk. Memory does not grow with
// the sequence length.
SampleWalk walk_of(const Dataset& data, int64_t begin, int64_t threads, int64_t tokens_at_once);

struct SampleChunk {
  int64_t first, count;
  int64_t thread;  // thread that works on it, from 0
};

// Calls `work` for each chunk, and afterwards `done` for each chunk in order. Returns false if it was stopped.
bool for_samples(const SampleWalk& walk, const std::function<void(const SampleChunk&)>& work,
                 const std::function<void(const SampleChunk&)>& done);

// Returns -log of each id's share of all training tokens. Reads the tokens once, and calls `progress(samples done)`
// repeatedly. Returns nothing if `stop` ended it. Needs 8 bytes per vocabulary entry and thread.
std::optional<std::vector<double>> token_costs(const Dataset& data, int64_t vocab, int64_t threads,
                                               const std::function<void(int64_t)>& progress,
                                               const std::function<bool()>& stop);

// Borrows the data and the result of `costs`, which returns token_costs() and is called only if the metric needs it.
// Returns null for an unknown name.
std::unique_ptr<SampleMetric> make_token_metric(std::string_view name, const Dataset& data, int64_t vocab,
                                                const std::function<std::span<const double>()>& costs);

}  // namespace megalith

#include "data/sample_metrics.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace megalith {
namespace {

class LengthMetric : public SampleMetric {
 public:
  explicit LengthMetric(const Dataset& data) : data_(data) {}
  void compute(int64_t first, std::span<double> out) const override {
    for (size_t i = 0; i < out.size(); i++)
      out[i] = static_cast<double>(data_.longest_document(first + static_cast<int64_t>(i)));
  }

 private:
  const Dataset& data_;
};

class RarityMetric : public SampleMetric {
 public:
  RarityMetric(const Dataset& data, std::vector<double> cost) : data_(data), cost_(std::move(cost)) {}
  void compute(int64_t first, std::span<double> out) const override {
    std::vector<int64_t> ids(static_cast<size_t>(data_.sequence()));
    for (size_t i = 0; i < out.size(); i++) {
      data_.sample_tokens(first + static_cast<int64_t>(i), ids);
      out[i] = 0;
      for (int64_t id : ids) out[i] += cost_[static_cast<size_t>(id)];
    }
  }

 private:
  const Dataset& data_;
  std::vector<double> cost_;  // -log(frequency), by id
};

class ProductMetric : public SampleMetric {
 public:
  ProductMetric(std::unique_ptr<SampleMetric> a, std::unique_ptr<SampleMetric> b) : a_(std::move(a)), b_(std::move(b)) {}
  void compute(int64_t first, std::span<double> out) const override {
    std::vector<double> other(out.size());
    a_->compute(first, out);
    b_->compute(first, other);
    for (size_t i = 0; i < out.size(); i++) out[i] *= other[i];
  }

 private:
  std::unique_ptr<SampleMetric> a_, b_;
};

class CompressionMetric : public SampleMetric {
 public:
  CompressionMetric(const Dataset& data, int64_t vocab) : data_(data), width_(vocab <= 65536 ? 2 : 4) {}
  void compute(int64_t first, std::span<double> out) const override {
    std::vector<int64_t> ids(static_cast<size_t>(data_.sequence()));
    std::string bytes, packed(ZSTD_compressBound(ids.size() * width_), '\0');
    for (size_t i = 0; i < out.size(); i++) {
      data_.sample_tokens(first + static_cast<int64_t>(i), ids);
      bytes.clear();
      for (int64_t id : ids)
        for (size_t b = 0; b < width_; b++) bytes += static_cast<char>(id >> (8 * b));
      const size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3);
      MEGALITH_ASSERT(!ZSTD_isError(size), "{}", ZSTD_getErrorName(size));
      out[i] = static_cast<double>(size) / static_cast<double>(bytes.size());
    }
  }

 private:
  const Dataset& data_;
  size_t width_;
};

// -log of each id's share of all training tokens.
std::vector<double> token_costs(const Dataset& data, int64_t vocab, int64_t threads,
                                const std::function<void(int64_t)>& progress) {
  std::vector<int64_t> counts(static_cast<size_t>(vocab));
  std::mutex mutex;
  for_samples(
      0, data.samples(), threads,
      [&](int64_t first, int64_t count) {
        std::vector<int64_t> ids(static_cast<size_t>(data.sequence())), seen;
        for (int64_t i = first; i < first + count; i++) {
          data.sample_tokens(i, ids);
          seen.insert(seen.end(), ids.begin(), ids.end());
        }
        std::lock_guard lock(mutex);
        for (int64_t id : seen) counts[static_cast<size_t>(id)]++;
      },
      [&](int64_t first, int64_t count) { progress(first + count); });
  std::vector<double> costs(counts.size());
  const auto all = static_cast<double>(data.samples() * data.sequence());
  for (size_t id = 0; id < counts.size(); id++)
    costs[id] = counts[id] > 0 ? -std::log(static_cast<double>(counts[id]) / all) : 0;
  return costs;
}

}  // namespace

std::span<const std::string_view> token_metrics() {
  static constexpr std::array<std::string_view, 4> kNames{"length", "rarity", "length_rarity", "compression"};
  return kNames;
}

std::unique_ptr<SampleMetric> make_token_metric(std::string_view name, const Dataset& data, int64_t vocab, int64_t threads,
                                                const std::function<void(int64_t)>& progress) {
  auto rarity = [&] { return std::make_unique<RarityMetric>(data, token_costs(data, vocab, threads, progress)); };
  if (name == "length") return std::make_unique<LengthMetric>(data);
  if (name == "rarity") return rarity();
  if (name == "length_rarity") return std::make_unique<ProductMetric>(std::make_unique<LengthMetric>(data), rarity());
  if (name == "compression") return std::make_unique<CompressionMetric>(data, vocab);
  return nullptr;
}

bool for_samples(int64_t begin, int64_t samples, int64_t threads, const std::function<void(int64_t, int64_t)>& work,
                 const std::function<void(int64_t, int64_t)>& done, const std::function<bool()>& stop) {
  // A round is one chunk a thread: simple, and chunks take about equally long.
  for (int64_t round = begin; round < samples; round += threads * kSampleChunk) {
    if (stop && stop()) return false;
    std::vector<std::exception_ptr> failures(static_cast<size_t>(threads));
    auto chunk = [&](int64_t thread) {
      const int64_t first = round + thread * kSampleChunk;
      if (first >= samples) return;
      try {
        work(first, std::min(kSampleChunk, samples - first));
      } catch (...) {
        failures[static_cast<size_t>(thread)] = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> helpers;
      for (int64_t thread = 1; thread < threads; thread++) helpers.emplace_back(chunk, thread);
      chunk(0);
    }
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    for (int64_t first = round; first < std::min(samples, round + threads * kSampleChunk); first += kSampleChunk)
      done(first, std::min(kSampleChunk, samples - first));
  }
  return true;
}

}  // namespace megalith

#include "data/sample_metrics.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
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
  RarityMetric(const Dataset& data, std::span<const double> cost) : data_(data), cost_(cost) {}
  void compute(int64_t first, std::span<double> out) const override {
    std::vector<int64_t> ids;
    for (size_t i = 0; i < out.size(); i++) {
      data_.sample_tokens(first + static_cast<int64_t>(i), ids);
      out[i] = 0;
      for (int64_t id : ids) out[i] += cost_[static_cast<size_t>(id)];
    }
  }

 private:
  const Dataset& data_;
  std::span<const double> cost_;  // -log(frequency), by id
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
    std::vector<int64_t> ids;
    std::string bytes, packed;
    for (size_t i = 0; i < out.size(); i++) {
      data_.sample_tokens(first + static_cast<int64_t>(i), ids);
      bytes.clear();
      for (int64_t id : ids)
        for (size_t b = 0; b < width_; b++) bytes += static_cast<char>(id >> (8 * b));
      packed.resize(ZSTD_compressBound(bytes.size()));
      const size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3);
      MEGALITH_ASSERT(!ZSTD_isError(size), "{}", ZSTD_getErrorName(size));
      out[i] = static_cast<double>(size) / static_cast<double>(bytes.size());
    }
  }

 private:
  const Dataset& data_;
  size_t width_;
};

}  // namespace

std::span<const std::string_view> token_metrics() {
  static constexpr std::array<std::string_view, 4> kNames{"length", "rarity", "length_rarity", "compression"};
  return kNames;
}

std::unique_ptr<SampleMetric> make_token_metric(std::string_view name, const Dataset& data, int64_t vocab,
                                                const std::function<std::span<const double>()>& costs) {
  if (name == "length") return std::make_unique<LengthMetric>(data);
  if (name == "rarity") return std::make_unique<RarityMetric>(data, costs());
  if (name == "length_rarity")
    return std::make_unique<ProductMetric>(std::make_unique<LengthMetric>(data),
                                           std::make_unique<RarityMetric>(data, costs()));
  if (name == "compression") return std::make_unique<CompressionMetric>(data, vocab);
  return nullptr;
}

std::optional<std::vector<double>> token_costs(const Dataset& data, int64_t vocab, int64_t threads,
                                               const std::function<void(int64_t)>& progress,
                                               const std::function<bool()>& stop) {
  std::vector<std::vector<int64_t>> counts(static_cast<size_t>(threads), std::vector<int64_t>(static_cast<size_t>(vocab)));
  SampleWalk walk = walk_of(data, 0, threads, SampleMetric::kTokensAtOnce);
  walk.stop = stop;
  const bool whole = for_samples(
      walk,
      [&](const SampleChunk& chunk) {
        std::vector<int64_t> ids;
        for (int64_t i = chunk.first; i < chunk.first + chunk.count; i++) {
          data.sample_tokens(i, ids);
          for (int64_t id : ids) counts[static_cast<size_t>(chunk.thread)][static_cast<size_t>(id)]++;
        }
      },
      [&](const SampleChunk& chunk) { progress(chunk.first + chunk.count); });
  if (!whole) return std::nullopt;
  std::vector<double> costs(static_cast<size_t>(vocab));
  const auto all = static_cast<double>(data.train_tokens());
  for (size_t id = 0; id < costs.size(); id++) {
    int64_t count = 0;
    for (const std::vector<int64_t>& of_thread : counts) count += of_thread[id];
    costs[id] = count > 0 ? -std::log(static_cast<double>(count) / all) : 0;
  }
  return costs;
}

SampleWalk walk_of(const Dataset& data, int64_t begin, int64_t threads, int64_t tokens_at_once) {
  const int64_t share = (data.samples() - begin + threads - 1) / threads;  // samples of one thread
  return {begin, data.samples(), std::clamp<int64_t>(std::min(tokens_at_once / data.sample_length(), share), 1, 512), threads};
}

bool for_samples(const SampleWalk& walk, const std::function<void(const SampleChunk&)>& work,
                 const std::function<void(const SampleChunk&)>& done) {
  // A round is one chunk per thread. This is simple, and chunks take about equally long.
  for (int64_t round = walk.begin; round < walk.end; round += walk.threads * walk.chunk) {
    if (walk.stop && walk.stop()) return false;
    auto chunk_of = [&](int64_t thread) {
      const int64_t first = std::min(walk.end, round + thread * walk.chunk);
      return SampleChunk{first, std::min(walk.chunk, walk.end - first), thread};
    };
    std::vector<std::exception_ptr> failures(static_cast<size_t>(walk.threads));
    auto try_work = [&](int64_t thread) {
      try {
        if (const SampleChunk chunk = chunk_of(thread); chunk.count > 0) work(chunk);
      } catch (...) {
        failures[static_cast<size_t>(thread)] = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> helpers;
      for (int64_t thread = 1; thread < walk.threads; thread++) helpers.emplace_back(try_work, thread);
      try_work(0);
    }
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    for (int64_t thread = 0; thread < walk.threads; thread++)
      if (const SampleChunk chunk = chunk_of(thread); chunk.count > 0) done(chunk);
  }
  return true;
}

}  // namespace megalith

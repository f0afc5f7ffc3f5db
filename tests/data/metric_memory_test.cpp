// Memory of a metric in addition to its values, while it is computed and in its files.
#include <gtest/gtest.h>

#include <filesystem>

#include "data/deepspeed_index.h"
#include "data/metric_file.h"
#include "data/sample_metrics.h"
#include "peak_heap.h"
#include "temp_dir.h"

namespace megalith {
namespace {

constexpr int64_t kFixed = 1'000'000;  // bytes: buffers and similar

class MetricMemory : public testing::Test {
 protected:
  const TempDir folder_;
  const std::filesystem::path dir_ = folder_.path();
};

TEST_F(MetricMemory, OfDeepSpeedsIndexIsTheOrderOfTheSamples) {
  std::vector<double> values(500'000);
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<double>(i * 7919 % values.size()) / 4;
  const PeakHeap heap;
  write_deepspeed_index(dir_, "m", values);
  EXPECT_LT(heap.grown(), 8 * std::ssize(values) + kFixed);
  EXPECT_EQ(read_deepspeed_values(dir_ / "m_sample_to_metric"), values);
  EXPECT_EQ(read_deepspeed_values(dir_ / "m_index_to_metric"), values);
}

TEST_F(MetricMemory, OfGoingOnDoesNotGrowWithWhatIsThere) {
  const MetricSubject subject{"m", 500'000, "d"};
  {
    MetricWriter writer(dir_ / "m.metric", subject);
    writer.add(std::vector<double>(400'000, 1.5));
  }
  const PeakHeap heap;
  MetricWriter writer(dir_ / "m.metric", subject);
  EXPECT_EQ(writer.done(), 400'000);
  EXPECT_LT(heap.grown(), kFixed);
}

TEST_F(MetricMemory, OfCountingTokensDoesNotGrowWithTheSequence) {
  constexpr int64_t kSequence = 1 << 17, kSamples = 16;
  DataSettings settings;
  settings.sequence = kSequence;
  settings.valid_fraction = 0;
  VocabularyFacts vocabulary;
  vocabulary.vocab_size = 100;
  TokenSources sources;
  sources.push_back(std::make_unique<MemorySource>(std::vector<int64_t>(kSequence * kSamples + 1, 7)));
  const Dataset data(std::move(sources), {}, settings, {}, vocabulary, 1, 1);
  const PeakHeap heap;
  EXPECT_EQ(token_costs(data, 100, 2, [](int64_t) {}, {})->at(7), 0);
  EXPECT_LT(heap.grown(), 2 * 8 * kSequence + kFixed);  // one sample per thread
}

}  // namespace
}  // namespace megalith

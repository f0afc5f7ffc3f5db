#include "report/analysis_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "peak_heap.h"

namespace megalith {
namespace {

// 997 different values, each many times, in no order.
std::vector<double> some_values(size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; i++) values[i] = static_cast<double>(i * 7919 % 997) / 8 - 20;
  return values;
}

TEST(MetricSummary, IsThatOfAllValuesInOrder) {
  for (size_t count : {1u, 2u, 7u, 5000u}) {
    const std::vector<double> values = some_values(count);
    std::vector<int64_t> rising(count);
    std::iota(rising.begin(), rising.end(), int64_t{0});
    std::ranges::stable_sort(rising, {}, [&](int64_t i) { return values[static_cast<size_t>(i)]; });
    const MetricSummary summary = summarise_metric("m", values, 12);
    ASSERT_EQ(summary.percentiles.size(), 9u);
    // Samples as a filter admits them: those for which less than this percentage of samples come before. So 1% of 50 is one
    // sample.
    for (auto [percent, value] : summary.percentiles) {
      size_t hardest = 0;
      for (size_t i = 0; i < count; i++)
        if (100.0 * static_cast<double>(i) / static_cast<double>(count) < percent) hardest = i;
      EXPECT_EQ(value, values[static_cast<size_t>(rising[hardest])]) << percent;
    }
    ASSERT_EQ(summary.easiest.size(), std::min<size_t>(12, count));
    ASSERT_EQ(summary.hardest.size(), summary.easiest.size());
    for (size_t i = 0; i < summary.easiest.size(); i++) {
      EXPECT_EQ(summary.easiest[i].sample, rising[i]);
      EXPECT_EQ(summary.hardest[i].sample, rising[count - 1 - i]);
      EXPECT_EQ(summary.hardest[i].value, values[static_cast<size_t>(rising[count - 1 - i])]);
    }
    EXPECT_EQ(std::accumulate(summary.histogram.begin(), summary.histogram.end(), int64_t{0}), std::ssize(values));
    EXPECT_EQ(summary.low, summary.percentiles.front().second);
    EXPECT_EQ(summary.high, summary.percentiles.back().second);
  }
}

TEST(MetricSummary, TakesEightBytesASample) {
  const std::vector<double> values = some_values(500'000);
  const PeakHeap heap;
  summarise_metric("m", values, 5);
  EXPECT_LT(heap.grown(), 8 * std::ssize(values) + 100'000);
}

}  // namespace
}  // namespace megalith

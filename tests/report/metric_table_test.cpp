#include "report/metric_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/files.h"
#include "source_folder.h"

namespace megalith {
namespace {

TEST(MetricTable, KeysAndTagsAreUniqueAndEveryRowIsExplained) {
  std::set<std::string_view> keys, tags;
  for (const MetricRow& row : kMetrics) {
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    if (!row.tag.empty()) EXPECT_TRUE(tags.insert(row.tag).second) << row.tag;
    EXPECT_TRUE(row.about.ends_with('.')) << row.key;
    if (row.form != MetricForm::own) EXPECT_EQ(row.chart.empty(), row.label.empty()) << row.key;
  }
}

TEST(MetricTable, MetricsThatShareAChartHaveOneUnit) {
  for (const auto& group : metrics_by_chart())
    for (const MetricRow* row : group) EXPECT_EQ(row->unit, group.front()->unit) << row->key;
}

TEST(MetricTable, PageIsGeneratedFromTheTable) {
  const auto file = source_folder() / "docs/reference/metrics.md";
  if (std::getenv("MEGALITH_REGENERATE")) std::ofstream(file) << metrics_reference();
  EXPECT_EQ(read_file(file), metrics_reference()) << "the table changed: run make docs";
}

}  // namespace
}  // namespace megalith

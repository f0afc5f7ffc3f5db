// Summaries of a metric's values: as text for the terminal, as JSON, and as a self-contained page.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace megalith {

struct MetricExample {
  int64_t sample = 0;
  double value = 0;
  std::string text;
};

struct MetricSummary {
  std::string metric;
  int64_t samples = 0;
  double mean = 0;
  std::vector<std::pair<int, double>> percentiles;  // at 0, 1, 5, ... 99, 100%: a filter admits up to this value
  double low = 0, high = 0;                         // ends of the histogram
  std::vector<int64_t> histogram;                   // 20 bins of equal width
  std::vector<MetricExample> easiest, hardest;
};

// Computes everything except the texts of the examples; `examples` of each kind. Needs 8 bytes per sample while it
// works.
MetricSummary summarise_metric(const std::string& metric, std::span<const double> values, int64_t examples);

std::string metric_table(const MetricSummary& summary);  // returns a few lines of text
nlohmann::json to_json(const MetricSummary& summary);
std::string analysis_page(std::span<const MetricSummary> summaries, const std::string& title);

}  // namespace megalith

// metrics.jsonl: one JSON object per line, one line per step. All curves of a run are drawn from it.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/metric_table.h"

namespace megalith {

// Loads of the experts of one layer: means over the steps since the previous record with loads.
struct ExpertLoads {
  int64_t layer = 0;
  std::vector<double> load;    // by expert: its tokens divided by the mean; 1 is balanced
  double dropped = 0;          // share of the choices that no expert took
  double entropy = 0;          // of the router, in nats; log(experts) if it prefers no expert
  bool operator==(const ExpertLoads&) const = default;
};

// The metrics of one step. Numbers are by MetricId; metric_table.h describes each. A number that was not measured is
// absent.
struct StepMetrics {
  int64_t step = 0;
  std::array<std::optional<double>, kMetricCount> values{};
  std::vector<double> epochs;  // one for each data set that is blended
  bool skipped = false;
  std::vector<std::pair<std::string, double>> difficulty;
  std::vector<ExpertLoads> expert_layers;
  std::optional<std::string> sample;

  std::optional<double>& operator[](MetricId id) { return values[static_cast<size_t>(id)]; }
  const std::optional<double>& operator[](MetricId id) const { return values[static_cast<size_t>(id)]; }
  // Returns NaN if it was not measured.
  double get(MetricId id) const { return (*this)[id].value_or(std::numeric_limits<double>::quiet_NaN()); }
};

// Returns one line of metrics.jsonl, without its newline. JSON has no infinities: a non-finite number becomes null, and
// a string field says which ("loss":null,"loss_nonfinite":"nan"). Bytes that are not UTF-8 become U+FFFD.
std::string to_json_line(const StepMetrics& metrics);

// Returns an empty value if the line is not a complete record (cut by a crash, or not ours).
std::optional<StepMetrics> parse_metrics_line(std::string_view line);

// Returns all complete records, in the file's order. Leaves out other lines, and warns about them, except about an
// incomplete last line that a crash leaves. Throws UserError if the file cannot be read.
std::vector<StepMetrics> read_metrics(const std::filesystem::path& path);

// Appends to metrics.jsonl. When append() returns, the whole record is in the file. Writing metrics must not stop the
// run. So a full disk gives one warning, and the next step tries again.
class MetricsLog {
 public:
  // `resumed_step`: the run continues after this step, so later records are removed. The file is replaced by one rename
  // or not changed. 0 begins an empty file. Throws UserError or Fault if it cannot be opened.
  MetricsLog(const std::filesystem::path& path, int64_t resumed_step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void append(const StepMetrics& metrics);
  int64_t lost() const;  // records that could not be written

 private:
  int write_waiting();  // returns 0, or errno

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;  // bytes of complete records
  int64_t lost_ = 0;
  std::string waiting_;  // records that could not be written yet
  int64_t waiting_records_ = 0;
};

}  // namespace megalith

// metrics.jsonl: one JSON object a line, one line a step; what every curve of a run is drawn from.
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

// What came to the experts of one layer since the record before that says so: means.
struct ExpertLoads {
  int64_t layer = 0;
  std::vector<double> load;    // by expert: its tokens over the mean; 1 is even
  double dropped = 0;          // share of the choices that no expert took
  double entropy = 0;          // of the router, in nats: log(experts) where it cannot tell them apart
  bool operator==(const ExpertLoads&) const = default;
};

// One step. Numbers are by MetricId; metric_table.h says what each means. One that was not measured is absent.
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
  // Not a number where it was not measured.
  double get(MetricId id) const { return (*this)[id].value_or(std::numeric_limits<double>::quiet_NaN()); }
};

// One line of metrics.jsonl, without its newline. JSON has no infinities: a non-finite number becomes null
// beside a string field that says which ("loss":null,"loss_nonfinite":"nan"). Bytes that are not UTF-8 become
// U+FFFD.
std::string to_json_line(const StepMetrics& metrics);

// Empty when the line is not a whole record (torn by a crash, or not ours).
std::optional<StepMetrics> parse_metrics_line(std::string_view line);

// All whole records, in the file's order. Lines that are none are left out, with a warning when they are more
// than the torn end a crash leaves. Throws UserError when the file cannot be read.
std::vector<StepMetrics> read_metrics(const std::filesystem::path& path);

// Appends to metrics.jsonl; a record is in the file, whole, when append() returns. The curve of a run must
// not stop the run: a full disk loses records with one warning and is tried again at the next step.
class MetricsLog {
 public:
  // `resumed_step`: the run goes on after this step, so records of later ones are dropped (the file is
  // replaced in one rename or left alone); 0 begins an empty file. Throws UserError or Fault when it cannot
  // be opened.
  MetricsLog(const std::filesystem::path& path, int64_t resumed_step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void append(const StepMetrics& metrics);
  int64_t lost() const { return lost_; }  // records that could not be written

 private:
  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;  // bytes of whole records
  int64_t lost_ = 0;
};

}  // namespace megalith

// metrics.jsonl: one JSON object a line, one line a step; what every curve of a run is drawn from.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

// What came to the experts of one layer since the record before that says so: means.
struct ExpertLoads {
  int64_t layer = 0;
  std::vector<double> load;    // by expert: its tokens over the mean; 1 is even
  double dropped = 0;          // share of the choices that no expert took
  double entropy = 0;          // of the router, in nats: log(experts) where it cannot tell them apart
  bool operator==(const ExpertLoads&) const = default;
};

// Of the layers with experts.
struct ExpertMetrics {
  double aux = 0, z = 0;       // balancing and z loss, means over tokens and layers, without their weights
  double dropped = 0;          // share of the choices that no expert took
  double load = 1;             // the busiest expert's tokens over the mean, in the layer where that is most
  double entropy = 0;          // of the routers, mean over tokens and layers
  std::vector<ExpertLoads> layers;  // in some hundred records of a run
  bool operator==(const ExpertMetrics&) const = default;
};

// What went over the disk of a run that spills.
struct DiskMetrics {
  int64_t read_bytes = 0, written_bytes = 0;  // of rank 0
  int64_t experts_called = 0;  // by layers that had to wait for them: the step before had not chosen them
  bool operator==(const DiskMetrics&) const = default;
};

struct StepMetrics {
  int64_t step = 0;            // steps done, this one included: the first step is 1
  double loss = 0;             // mean over the step's targets, in nats; may be non-finite where skipped
  double lr = 0;
  double grad_norm = 0;        // global, before clipping
  int64_t tokens = 0;          // consumed by the run so far
  std::vector<double> epochs;  // passes over the training data so far; one for each data set that is blended
  double step_s = 0;           // seconds, without validation
  double tokens_per_s = 0;     // of this step
  int64_t mem_peak_bytes = 0;  // of the process so far
  bool skipped = false;        // non-finite loss or gradient: no update was made
  std::optional<double> loss_scale;   // fp16
  // Where a curriculum or token dropping shapes the step.
  std::optional<int64_t> length;        // tokens of a sequence
  std::optional<int64_t> kept;          // of them, in the layers that drop
  std::optional<double> layer_tokens;   // consumed so far; a token that one of L layers dropped counts 1 / L less
  std::vector<std::pair<std::string, double>> difficulty;  // the limit of each metric
  std::optional<ExpertMetrics> experts;
  std::optional<DiskMetrics> disk;
  std::optional<double> valid_loss;   // where the step was followed by a validation
  std::optional<double> save_s;       // delay that a save added to this step, in seconds
  std::optional<std::string> sample;  // text generated after this step
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

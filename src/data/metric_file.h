// One number per training sample on disk: difficulties that `megalith analyze` computes or a user provides.
//
// Our format is NAME.metric: a line of JSON that describes the values, then the values as little-endian float64. Spaces
// at the end of the line align the values to 8 bytes. We also read text with one number per line, and DeepSpeed's index
// files (.bin and .idx: data/deepspeed_index.h).
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace megalith {

// Identifies the data and the model that values were computed from.
struct MetricSubject {
  std::string metric;
  int64_t samples = 0;
  std::string data;   // Dataset::fingerprint()
  std::string model;  // metric loss: identifies the weights that computed the loss; empty: no model, or any model
  bool operator==(const MetricSubject&) const = default;
};

// Returns the values of a file in any of these formats. Throws a UserError that names the file unless it has
// `subject.samples` finite numbers. A file of ours must also have the subject's data, and its model if the subject names
// one.
std::vector<double> read_metric(const std::filesystem::path& path, const MetricSubject& subject);

// True if the file is a complete file of ours for exactly this subject.
bool has_metric(const std::filesystem::path& path, const MetricSubject& subject);

// Writes a .metric to a temporary file and renames it when it is complete. Continues the temporary file that an
// interrupted writer of the same subject left. A crash of the machine may have lost values: then it continues at the
// first lost value.
class MetricWriter {
 public:
  MetricWriter(std::filesystem::path path, const MetricSubject& subject);
  ~MetricWriter();  // keeps the temporary file
  MetricWriter(const MetricWriter&) = delete;
  MetricWriter& operator=(const MetricWriter&) = delete;

  int64_t done() const { return done_; }  // number of values already written
  void add(std::span<const double> values);
  void finish();

 private:
  MetricWriter(std::filesystem::path path, int64_t samples);
  int64_t values_after(const std::string& head) const;  // number of valid values; -1: the file has another subject

  std::filesystem::path path_, aside_;
  int64_t samples_, done_ = 0;
  int fd_ = -1;
};

}  // namespace megalith

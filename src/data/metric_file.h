// One number a training sample on disk: the difficulties that `megalith analyze` finds or a user brings.
//
// Ours is NAME.metric: a line of JSON that says what it is of, filled up with spaces so that the values, little-endian
// float64, begin at a multiple of 8 bytes. Read as well: text with one number a line, and DeepSpeed's index files (.bin
// and .idx: data/deepspeed_index.h).
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace megalith {

// What values belong to.
struct MetricSubject {
  std::string metric;
  int64_t samples = 0;
  std::string data;   // Dataset::fingerprint()
  std::string model;  // metric loss: names the weights whose loss it is; empty: of no model, or of any
  bool operator==(const MetricSubject&) const = default;
};

// The values of a file of any of the kinds. UserError, naming the file, where they are not `subject.samples` finite
// numbers, or where a file of ours is of other data, or of another model than the subject names.
std::vector<double> read_metric(const std::filesystem::path& path, const MetricSubject& subject);

// Whether the file is one of ours, whole, of exactly this subject.
bool has_metric(const std::filesystem::path& path, const MetricSubject& subject);

// Writes a .metric aside and renames it when it is whole. What an interrupted writer of the same subject left aside is
// gone on from, up to the first value that a crash of the machine lost.
class MetricWriter {
 public:
  MetricWriter(std::filesystem::path path, const MetricSubject& subject);
  ~MetricWriter();  // leaves what is aside
  MetricWriter(const MetricWriter&) = delete;
  MetricWriter& operator=(const MetricWriter&) = delete;

  int64_t done() const { return done_; }  // values there already
  void add(std::span<const double> values);
  void finish();

 private:
  MetricWriter(std::filesystem::path path, int64_t samples);
  int64_t values_after(const std::string& head) const;  // -1: of another subject

  std::filesystem::path path_, aside_;
  int64_t samples_, done_ = 0;
  int fd_ = -1;
};

}  // namespace megalith

#include "report/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"

namespace megalith {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of fields, for people who read the file

constexpr std::string_view kNonfinite = "_nonfinite";

void put(Json& record, const std::string& key, double value) {
  if (std::isfinite(value)) {
    record[key] = value;
    return;
  }
  record[key] = nullptr;
  record[key + std::string(kNonfinite)] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::optional<double> get(const Json& record, const std::string& key) {
  auto field = record.find(key);
  if (field == record.end()) return std::nullopt;
  if (field->is_number()) return field->get<double>();
  auto which = record.find(key + std::string(kNonfinite));
  if (which != record.end() && *which == "inf") return std::numeric_limits<double>::infinity();
  if (which != record.end() && *which == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// The object that contains a key, and its name there: "disk.read_bytes" is `read_bytes` of `disk`.
struct Place {
  explicit Place(std::string_view key) {
    const size_t dot = key.find('.');
    if (dot != key.npos) object = key.substr(0, dot);
    name = key.substr(dot == key.npos ? 0 : dot + 1);
  }
  Json& in(Json& record) const { return object.empty() ? record : record[object]; }
  const Json* found_in(const Json& record) const {
    if (object.empty()) return &record;
    const auto found = record.find(object);
    return found != record.end() && found->is_object() ? &*found : nullptr;
  }
  std::string object, name;
};

void put_own(Json& record, const MetricRow& row, const StepMetrics& m) {
  const Place place(row.key);
  switch (row.id) {
    case MetricId::step: record[place.name] = m.step; return;
    case MetricId::epoch:
      if (m.epochs.size() == 1) put(record, place.name, m.epochs[0]);
      if (m.epochs.size() > 1) record[place.name + "s"] = m.epochs;
      return;
    case MetricId::skipped:
      if (m.skipped) record[place.name] = true;
      return;
    case MetricId::difficulty:
      for (const auto& [metric, limit] : m.difficulty) put(record[place.name], metric, limit);
      return;
    case MetricId::expert_layers:
      for (const ExpertLoads& layer : m.expert_layers)
        place.in(record)[place.name].push_back(
            {{"layer", layer.layer}, {"load", layer.load}, {"dropped", layer.dropped}, {"entropy", layer.entropy}});
      return;
    case MetricId::sample:
      if (m.sample) record[place.name] = *m.sample;
      return;
    default: MEGALITH_ASSERT(false, "{} has no field of its own", row.key);
  }
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  for (const Json& number : list) numbers.push_back(number.is_number() ? number.get<double>() : 0);
  return numbers;
}

void take_own(StepMetrics& m, const MetricRow& row, const Json& field) {
  switch (row.id) {
    case MetricId::epoch: m.epochs = {field.is_number() ? field.get<double>() : 0}; return;
    case MetricId::skipped: m.skipped = field == true; return;
    case MetricId::difficulty:
      if (!field.is_object()) return;
      for (const auto& [metric, limit] : field.items())
        if (!metric.ends_with(kNonfinite)) m.difficulty.emplace_back(metric, get(field, metric).value_or(0));
      return;
    case MetricId::expert_layers:
      for (const Json& layer : field) {
        if (!layer.is_object()) continue;
        ExpertLoads& loads = m.expert_layers.emplace_back();
        loads.layer = static_cast<int64_t>(get(layer, "layer").value_or(0));
        loads.dropped = get(layer, "dropped").value_or(0);
        loads.entropy = get(layer, "entropy").value_or(0);
        if (auto load = layer.find("load"); load != layer.end() && load->is_array()) loads.load = numbers_of(*load);
      }
      return;
    case MetricId::sample:
      if (field.is_string()) m.sample = field.get<std::string>();
      return;
    default: return;
  }
}

// Calls `use(number, line)` for every line that ends with a newline. Returns the incomplete rest.
template <class Use>
std::string_view for_each_line(std::string_view text, Use use) {
  int64_t number = 1;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    use(number++, text.substr(0, end));
  return text;
}

// Counts lines that are not records of steps, and steps without a record. An incomplete last line is not counted: a
// crash leaves it.
class Damage {
 public:
  void see(int64_t line, const std::optional<StepMetrics>& metrics) {
    if (!metrics) {
      if (bad_++ == 0) first_bad_ = line;
      return;
    }
    if (metrics->step > last_ + 1 && missing_ == 0) first_missing_ = last_ + 1;
    missing_ += std::max<int64_t>(0, metrics->step - last_ - 1);
    last_ = metrics->step;
  }

  // Tells that records up to this step should exist.
  void until(int64_t step) {
    if (step > last_ && missing_ == 0) first_missing_ = last_ + 1;
    missing_ += std::max<int64_t>(0, step - last_);
  }

  void warn(const std::string& path) const {
    if (bad_ > 0)
      log::warn("{}:{}: damaged line (not a step record); damaged lines, all ignored: {}", path, first_bad_, bad_);
    if (missing_ > 0) log::warn("{}: steps without a record: {}, the first is step {}", path, missing_, first_missing_);
  }

 private:
  int64_t bad_ = 0, first_bad_ = 0, missing_ = 0, first_missing_ = 0, last_ = 0;
};

// Returns the complete records up to `last_step`, or nothing if the file contains only these.
std::optional<std::string> kept_records(std::string_view text, int64_t last_step, Damage& damage) {
  std::string kept;
  for_each_line(text, [&](int64_t number, std::string_view line) {
    auto metrics = parse_metrics_line(line);
    damage.see(number, metrics);
    if (metrics && metrics->step <= last_step) kept.append(line).push_back('\n');
  });
  if (kept.size() == text.size()) return std::nullopt;
  return kept;
}

}  // namespace

std::string to_json_line(const StepMetrics& m) {
  Json record;
  for (const MetricRow& row : kMetrics) {
    const std::optional<double>& value = m[row.id];
    const Place place(row.key);
    if (row.form == MetricForm::own) put_own(record, row, m);
    else if (value && row.form == MetricForm::whole && std::isfinite(*value))
      place.in(record)[place.name] = static_cast<int64_t>(*value);
    else if (value) put(place.in(record), place.name, *value);
  }
  return print_any_json(record);
}

std::optional<StepMetrics> parse_metrics_line(std::string_view line) {
  Json record = try_parse_ordered_json(line);
  if (!record.is_object()) return std::nullopt;
  auto step = record.find("step");
  if (step == record.end() || !step->is_number_integer()) return std::nullopt;
  StepMetrics m;
  m.step = step->get<int64_t>();
  for (const MetricRow& row : kMetrics) {
    const Place place(row.key);
    const Json* object = place.found_in(record);
    if (!object) continue;
    if (row.form != MetricForm::own) m[row.id] = get(*object, place.name);
    else if (auto field = object->find(place.name); field != object->end()) take_own(m, row, *field);
  }
  if (auto each = record.find("epochs"); each != record.end() && each->is_array()) m.epochs = numbers_of(*each);
  return m;
}

std::vector<StepMetrics> read_metrics(const std::filesystem::path& path) {
  std::string text = read_file(path);
  std::vector<StepMetrics> all;
  Damage damage;
  for_each_line(text, [&](int64_t number, std::string_view line) {
    auto metrics = parse_metrics_line(line);
    damage.see(number, metrics);
    if (metrics) all.push_back(std::move(*metrics));
  });
  damage.warn(path.string());
  return all;
}

MetricsLog::MetricsLog(const std::filesystem::path& path, int64_t resumed_step) : path_(path.string()) {
  const bool there = resumed_step > 0 && std::filesystem::exists(path);
  Damage damage;
  if (!there) write_file_atomically(path, "");
  else if (auto kept = kept_records(read_file(path), resumed_step, damage)) write_file_atomically(path, *kept);
  damage.until(resumed_step);
  damage.warn(path_);
  fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) throw_cannot("write", path, errno);
  size_ = ::lseek(fd_, 0, SEEK_END);
}

int64_t MetricsLog::lost() const { return lost_ + waiting_records_; }

MetricsLog::~MetricsLog() {
  if (!waiting_.empty()) write_waiting();
  if (fd_ >= 0) ::close(fd_);
}

void MetricsLog::append(const StepMetrics& metrics) {
  constexpr size_t kMostWaiting = 1 << 20;  // bytes
  waiting_ += to_json_line(metrics) + '\n';
  waiting_records_++;
  const bool failed_before = waiting_records_ > 1;
  if (const int error = write_waiting(); error != 0) {
    if (!failed_before)
      log::warn("{}: step {} is not recorded: {}; training continues, and the next step tries again", path_, metrics.step,
                std::strerror(error));
    if (waiting_.size() <= kMostWaiting) return;
    lost_ += waiting_records_;
  }
  waiting_.clear();
  waiting_records_ = 0;
}

int MetricsLog::write_waiting() {
  size_t written = 0;
  while (written < waiting_.size()) {
    ssize_t n = ::write(fd_, waiting_.data() + written, waiting_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      // Remove the incomplete record, so that the next record begins a line.
      if (written > 0 && ::ftruncate(fd_, size_) != 0) return errno;
      return error;
    }
    written += static_cast<size_t>(n);
  }
  size_ += std::ssize(waiting_);
  return 0;
}

}  // namespace megalith

#include "report/metrics.h"

#include <fcntl.h>
#include <unistd.h>

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

using Json = nlohmann::ordered_json;  // keeps our order of fields, for people who read the file

constexpr std::string_view kNonfinite = "_nonfinite";

void put(Json& record, const std::string& key, double value) {
  if (std::isfinite(value)) {
    record[key] = value;
    return;
  }
  record[key] = nullptr;
  record[key + std::string(kNonfinite)] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void put(Json& record, const std::string& key, const std::optional<double>& value) {
  if (value) put(record, key, *value);
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

ExpertMetrics read_experts(const Json& x) {
  ExpertMetrics m{get(x, "aux").value_or(0),  get(x, "z").value_or(0),       get(x, "dropped").value_or(0),
                  get(x, "load").value_or(1), get(x, "entropy").value_or(0), {}};
  const auto layers = x.find("layers");
  if (layers == x.end() || !layers->is_array()) return m;
  for (const Json& layer : *layers) {
    if (!layer.is_object()) continue;
    ExpertLoads loads{static_cast<int64_t>(get(layer, "layer").value_or(0)), {}, get(layer, "dropped").value_or(0),
                      get(layer, "entropy").value_or(0)};
    if (auto each = layer.find("load"); each != layer.end() && each->is_array())
      for (const Json& load : *each) loads.load.push_back(load.is_number() ? load.get<double>() : 0);
    m.layers.push_back(std::move(loads));
  }
  return m;
}

// Calls `use(number, line)` for every line that a newline ends; returns the torn rest.
template <class Use>
std::string_view for_each_line(std::string_view text, Use use) {
  int64_t number = 1;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    use(number++, text.substr(0, end));
  return text;
}

// The whole records up to `last_step`, or nothing when the file holds no others.
std::optional<std::string> kept_records(std::string_view text, int64_t last_step) {
  std::string kept;
  for_each_line(text, [&](int64_t, std::string_view line) {
    auto metrics = parse_metrics_line(line);
    if (metrics && metrics->step <= last_step) kept.append(line).push_back('\n');
  });
  if (kept.size() == text.size()) return std::nullopt;
  return kept;
}

}  // namespace

std::string to_json_line(const StepMetrics& m) {
  Json record;
  record["step"] = m.step;
  put(record, "loss", m.loss);
  put(record, "lr", m.lr);
  put(record, "grad_norm", m.grad_norm);
  record["tokens"] = m.tokens;
  if (m.epochs.size() == 1) put(record, "epoch", m.epochs[0]);
  if (m.epochs.size() > 1) record["epochs"] = m.epochs;
  put(record, "step_s", m.step_s);
  put(record, "tokens_per_s", m.tokens_per_s);
  record["mem_peak_bytes"] = m.mem_peak_bytes;
  if (m.skipped) record["skipped"] = true;
  put(record, "loss_scale", m.loss_scale);
  if (m.length) record["length"] = *m.length;
  if (m.kept) record["kept"] = *m.kept;
  put(record, "layer_tokens", m.layer_tokens);
  for (const auto& [metric, limit] : m.difficulty) put(record["difficulty"], metric, limit);
  if (m.experts) {
    Json& experts = record["experts"];
    put(experts, "aux", m.experts->aux);
    put(experts, "z", m.experts->z);
    put(experts, "dropped", m.experts->dropped);
    put(experts, "load", m.experts->load);
    put(experts, "entropy", m.experts->entropy);
    for (const ExpertLoads& layer : m.experts->layers)
      experts["layers"].push_back(
          {{"layer", layer.layer}, {"load", layer.load}, {"dropped", layer.dropped}, {"entropy", layer.entropy}});
  }
  if (m.disk)
    record["disk"] = {{"read_bytes", m.disk->read_bytes}, {"written_bytes", m.disk->written_bytes},
                      {"experts_called", m.disk->experts_called}};
  put(record, "valid_loss", m.valid_loss);
  put(record, "save_s", m.save_s);
  if (m.sample) record["sample"] = *m.sample;
  return print_any_json(record);
}

std::optional<StepMetrics> parse_metrics_line(std::string_view line) {
  Json record = try_parse_ordered_json(line);
  if (!record.is_object()) return std::nullopt;
  auto step = record.find("step");
  if (step == record.end() || !step->is_number_integer()) return std::nullopt;
  auto whole_of = [](const Json& of, const char* key) {
    auto field = of.find(key);
    return field != of.end() && field->is_number_integer() ? field->get<int64_t>() : 0;
  };
  auto whole = [&](const char* key) { return whole_of(record, key); };
  StepMetrics m;
  m.step = step->get<int64_t>();
  m.loss = get(record, "loss").value_or(std::numeric_limits<double>::quiet_NaN());
  m.lr = get(record, "lr").value_or(0);
  m.grad_norm = get(record, "grad_norm").value_or(0);
  m.tokens = whole("tokens");
  if (auto epoch = get(record, "epoch")) m.epochs = {*epoch};
  if (auto each = record.find("epochs"); each != record.end() && each->is_array())
    for (const Json& epoch : *each) m.epochs.push_back(epoch.is_number() ? epoch.get<double>() : 0);
  m.step_s = get(record, "step_s").value_or(0);
  m.tokens_per_s = get(record, "tokens_per_s").value_or(0);
  m.mem_peak_bytes = whole("mem_peak_bytes");
  auto skipped = record.find("skipped");
  m.skipped = skipped != record.end() && *skipped == true;
  m.loss_scale = get(record, "loss_scale");
  if (record.contains("length")) m.length = whole("length");
  if (record.contains("kept")) m.kept = whole("kept");
  m.layer_tokens = get(record, "layer_tokens");
  if (auto x = record.find("experts"); x != record.end() && x->is_object())
    m.experts = read_experts(*x);
  if (auto disk = record.find("disk"); disk != record.end() && disk->is_object())
    m.disk = DiskMetrics{whole_of(*disk, "read_bytes"), whole_of(*disk, "written_bytes"), whole_of(*disk, "experts_called")};
  if (auto limits = record.find("difficulty"); limits != record.end() && limits->is_object())
    for (const auto& [metric, limit] : limits->items()) m.difficulty.emplace_back(metric, get(*limits, metric).value_or(0));
  m.valid_loss = get(record, "valid_loss");
  m.save_s = get(record, "save_s");
  if (auto sample = record.find("sample"); sample != record.end() && sample->is_string())
    m.sample = sample->get<std::string>();
  return m;
}

std::vector<StepMetrics> read_metrics(const std::filesystem::path& path) {
  std::string text = read_file(path);
  std::vector<StepMetrics> all;
  int64_t bad = 0, first_bad = 0;
  for_each_line(text, [&](int64_t number, std::string_view line) {
    if (auto metrics = parse_metrics_line(line))
      all.push_back(std::move(*metrics));
    else if (bad++ == 0)
      first_bad = number;
  });
  if (bad > 0)
    log::warn("{}:{}: lines that are no records of steps are left out: {}", path.string(), first_bad, bad);
  return all;
}

MetricsLog::MetricsLog(const std::filesystem::path& path, int64_t resumed_step) : path_(path.string()) {
  if (resumed_step > 0 && std::filesystem::exists(path)) {
    if (auto kept = kept_records(read_file(path), resumed_step)) write_file_atomically(path, *kept);
  } else {
    write_file_atomically(path, "");
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) throw UserError({path_, "", "", "", fmt::format("cannot write: {}", std::strerror(errno))});
  size_ = ::lseek(fd_, 0, SEEK_END);
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsLog::append(const StepMetrics& metrics) {
  std::string line = to_json_line(metrics) + '\n';
  size_t written = 0;
  while (written < line.size()) {
    ssize_t n = ::write(fd_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int error = errno;
      // Without the torn piece the next record still begins a line.
      if (written > 0 && ::ftruncate(fd_, size_) != 0) error = errno;
      if (lost_++ == 0)
        log::warn("{}: step {} is not recorded: {}; training goes on", path_, metrics.step,
                  std::strerror(error));
      return;
    }
    written += static_cast<size_t>(n);
  }
  size_ += static_cast<int64_t>(line.size());
}

}  // namespace megalith

#include "planner/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stopwatch.h"

namespace megalith {
namespace {

constexpr double kBusy = 0.1;          // share of its time that a thread waits for a core; below 0.01 on an idle machine
constexpr int64_t kBusyHolds = 10 * 60;  // seconds until a measurement of a busy machine is repeated

int64_t now() {  // since 1970
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// An entry is a number or, from a busy machine, {"value": number, "until": seconds since 1970, "waited": share of the time}.
double value_of(const nlohmann::json& entry) {
  const nlohmann::json& value = entry.is_object() && entry.contains("value") ? entry["value"] : entry;
  return value.is_number() ? value.get<double>() : 0;
}

bool is_over(const nlohmann::json& entry) {
  return entry.is_object() &&
         (!entry.contains("until") || !entry["until"].is_number() || entry["until"].get<int64_t>() < now());
}

// 0 if the machine was idle.
double busy_share_of(const nlohmann::json& entry) {
  return entry.is_object() && entry.contains("waited") && entry["waited"].is_number() ? entry["waited"].get<double>() : 0;
}

}  // namespace

std::filesystem::path calibration_file() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "megalith" / "calibration.json";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "megalith" / "calibration.json";
  return {};
}

Measurements::Measurements(int64_t threads, bool may_measure, std::function<double()> core_waits)
    : threads_(threads),
      machine_(fmt::format("{}, {} threads", processor_name(), threads)),
      path_(calibration_file()),
      core_waits_(std::move(core_waits)),
      all_(std::make_unique<nlohmann::json>(nlohmann::json::object())),
      may_measure_(may_measure) {
  if (path_.empty() || !std::filesystem::exists(path_)) return;
  *all_ = try_parse_json(read_file(path_));
  if (!all_->is_object()) *all_ = nlohmann::json::object();
}

Measurements::~Measurements() = default;

std::optional<double> Measurements::find(const std::string& name) const {
  const auto mine = all_->find(machine_);
  if (mine == all_->end() || !mine->is_object() || !mine->contains(name)) return std::nullopt;
  const nlohmann::json& entry = (*mine)[name];
  if (value_of(entry) <= 0 || (may_measure_ && is_over(entry))) return std::nullopt;
  return value_of(entry);
}

double Measurements::get(const std::string& name, const std::function<double()>& measure) {
  if (const auto known = find(name)) {
    busiest_ = std::max(busiest_, busy_share_of((*all_)[machine_][name]));
    return *known;
  }
  if (!may_measure_) {
    complete_ = false;
    return 1;
  }
  double value = 0;
  watch([&] { value = measure(); });
  set(name, value);
  return value;
}

void Measurements::watch(const std::function<void()>& measure) {
  const double waited_before = core_waits_();
  const Stopwatch watch;
  measure();
  waited_ += std::max(0.0, core_waits_() - waited_before) / static_cast<double>(threads_);
  watched_ += watch.seconds();
}

void Measurements::set(const std::string& name, double value) {
  (*all_)[machine_][name] = value;
  made_.push_back(name);
}

std::string Measurements::warning() const {
  if (busiest_ < kBusy) return "";
  return fmt::format(
      "speeds were measured while other programs used the cores (threads waited {:.0f}% of the time). Predicted times are "
      "corrected for this, but less exact. Speeds are measured again after ten minutes",
      100 * busiest_);
}

void Measurements::save() {
  if (made_.empty()) return;
  if (waited_ >= kBusy * watched_) {
    const double share = waited_ / watched_;
    busiest_ = std::max(busiest_, share);
    nlohmann::json& mine = (*all_)[machine_];
    for (const std::string& name : made_)
      mine[name] = {{"value", mine[name]}, {"until", now() + kBusyHolds}, {"waited", share}};
    log::info("{}", warning());
  }
  if (path_.empty()) return;
  try {
    std::filesystem::create_directories(path_.parent_path());
    write_file_atomically(path_, print_json(*all_, 1));
  } catch (const std::exception& e) {
    log::info("cannot save the measured speeds, so the next run measures them again: {}", e.what());
  }
}

}  // namespace megalith

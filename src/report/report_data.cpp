// Collects the data that report.html embeds from a run directory:
//   run, written (seconds since 1970), files {name: "ok" | "missing" | why it cannot be read}
//   config (text), facts {model, data, batch, ...: short texts from it}, plan, summary (unchanged)
//   charts [{title, unit, series [{key, label, noisy}]}]: the charts of metric_table.h
//   curves {KEY: a curve, "difficulty/METRIC": a curve}: see series.h; empty if a run has no such metric
//   so_far: totals from metrics.jsonl, for runs without a summary
//   experts [{step, layers [{layer, load, dropped, entropy}]}]: records with all loads, thinned out
//   skipped {count, list}, samples {count, list}: the lists are thinned out to what a page can show
//   op_legend {NAME: {about, colour, repeats}}: every kind of op
//   trace {names, predicted, measured}: see trace_data.h
// Absent data is null.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "config/objective_table.h"
#include "config/yaml.h"
#include "report/html.h"
#include "report/metrics.h"
#include "report/series.h"
#include "report/trace_data.h"
#include "schedule/op_type.h"

namespace megalith {
namespace {

using nlohmann::json;

constexpr size_t kBuckets = 1000;  // a minimum, a mean and a maximum each: more than a wide screen has columns
constexpr size_t kListed = 100;    // largest number of samples, skipped steps and loads of experts

class RunFiles {
 public:
  explicit RunFiles(std::filesystem::path dir) : dir_(std::move(dir)) {}

  // Returns the file parsed by `parse`, or null with the reason in state().
  template <class Parse>
  json load(const std::string& name, Parse parse) {
    std::error_code ignored;
    if (!std::filesystem::exists(dir_ / name, ignored)) {
      state_[name] = "missing";
      return nullptr;
    }
    try {
      json value = parse(dir_ / name);
      state_[name] = "ok";
      return value;
    } catch (const std::exception& error) {
      state_[name] = error.what();
      return nullptr;
    }
  }
  json load_json(const std::string& name) {
    return load(name, [](const auto& path) { return parse_json(read_file(path), path.string()); });
  }
  json state() const { return state_; }

 private:
  std::filesystem::path dir_;
  json state_ = json::object();
};

json finite_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

// Returns evenly spaced indices, including the first and the last.
std::vector<size_t> thinned(size_t count) {
  std::vector<size_t> kept;
  size_t n = std::min(count, kListed);
  for (size_t i = 0; i < n; i++) kept.push_back(n == 1 ? 0 : i * (count - 1) / (n - 1));
  return kept;
}

// Returns the limit of a curriculum's metric. NaN for the length to which sequences are cut: it has a curve of its own.
double limit_of(const StepMetrics& m, const std::string& metric) {
  for (const auto& [name, limit] : m.difficulty)
    if (name == metric && !(name == "length" && m[MetricId::length])) return limit;
  return std::nan("");
}

json charts() {
  json charts = json::array();
  for (const auto& group : metrics_by_chart()) {
    const MetricRow& first = *group.front();
    if (first.chart.empty() || first.form == MetricForm::own) continue;
    json series = json::array();
    for (const MetricRow* row : group) series.push_back({{"key", row->key}, {"label", row->label}, {"noisy", row->noisy}});
    charts.push_back({{"title", first.chart}, {"unit", name(first.unit)}, {"series", series}});
  }
  return charts;
}

json curves_of(const std::vector<StepMetrics>& all) {
  auto curve = [&](auto value) {
    std::vector<Point> points;
    for (const StepMetrics& m : all) points.push_back({m.step, value(m)});
    return bucketed(points, kBuckets);
  };
  json curves = json::object();
  for (const MetricRow& row : kMetrics)
    if (!row.chart.empty() && row.form != MetricForm::own)
      curves[std::string(row.key)] = curve([&](auto& m) { return m.get(row.id); });
  if (!all.empty())
    for (const auto& [metric, _] : all.back().difficulty)
      curves["difficulty/" + metric] = curve([&metric = metric](auto& m) { return limit_of(m, metric); });
  return curves;
}

json so_far(const std::vector<StepMetrics>& all) {
  if (all.empty()) return nullptr;
  std::vector<double> times;
  double seconds = 0, saving = 0, loss = std::nan(""), valid = loss, best = loss;
  int64_t peak = 0, saves = 0, best_step = 0;
  const auto whole = [](const std::optional<double>& value) { return std::llround(value.value_or(0)); };
  for (const StepMetrics& m : all) {
    times.push_back(m[MetricId::step_s].value_or(0));
    seconds += times.back();
    peak = std::max<int64_t>(peak, whole(m[MetricId::mem_peak_bytes]));
    if (m[MetricId::save_s]) saves++, saving += *m[MetricId::save_s];
    if (std::isfinite(m.get(MetricId::loss))) loss = m.get(MetricId::loss);
    if (!std::isfinite(m.get(MetricId::valid_loss))) continue;
    valid = m.get(MetricId::valid_loss);
    if (!(valid >= best)) best = valid, best_step = m.step;
  }
  return {{"step", all.back().step},
          {"tokens", whole(all.back()[MetricId::tokens])},
          {"seconds", finite_or_null(seconds)},
          {"step_s", finite_or_null(median(std::move(times)))},
          {"peak_bytes", peak},
          {"loss", finite_or_null(loss)},
          {"valid_loss", finite_or_null(valid)},
          {"best_valid_loss", finite_or_null(best)},
          {"best_valid_step", best_step},
          {"saves", saves},
          {"save_s", finite_or_null(saving)}};
}

// Returns the steps for which `has` is true, as {count, list}. The list has `row` of at most kListed of them.
template <class Has, class Row>
json listed(const std::vector<StepMetrics>& all, const Has& has, const Row& row) {
  std::vector<const StepMetrics*> chosen;
  for (const StepMetrics& m : all)
    if (has(m)) chosen.push_back(&m);
  json list = json::array();
  for (size_t i : thinned(chosen.size())) list.push_back(row(*chosen[i]));
  return {{"count", chosen.size()}, {"list", list}};
}

json skipped_of(const std::vector<StepMetrics>& all) {
  return listed(all, [](const StepMetrics& m) { return m.skipped; }, [](const StepMetrics& m) -> json {
    return {{"step", m.step},
            {"loss", fmt::format("{:.4g}", m.get(MetricId::loss))},
            {"grad_norm", fmt::format("{:.4g}", m.get(MetricId::grad_norm))}};
  });
}

json expert_series(const std::vector<StepMetrics>& all) {
  return listed(all, [](const StepMetrics& m) { return !m.expert_layers.empty(); }, [](const StepMetrics& m) -> json {
    json layers = json::array();
    for (const ExpertLoads& layer : m.expert_layers)
      layers.push_back(
          {{"layer", layer.layer}, {"load", layer.load}, {"dropped", layer.dropped}, {"entropy", layer.entropy}});
    return {{"step", m.step}, {"layers", layers}};
  })["list"];
}

json samples_of(const std::vector<StepMetrics>& all) {
  return listed(all, [](const StepMetrics& m) { return m.sample.has_value(); }, [](const StepMetrics& m) -> json {
    return {{"step", m.step}, {"text", *m.sample}};
  });
}

const Yaml* entry_of(const Yaml& map, std::string_view key) {
  const auto found = std::ranges::find(map.entries, key, &Yaml::Entry::first);
  return found == map.entries.end() ? nullptr : &found->second;
}

std::string scalar_of(const Yaml* value) { return value && value->kind == Yaml::Kind::scalar ? value->text : ""; }

// Returns short texts for the head of the page. The whole configuration is shown below, so values that are not plain are
// left out here.
json facts_of(const std::string& config) {
  json facts = json::object();
  const Yaml root = parse_yaml(config, "config.yaml");
  auto fact = [&](const char* name, const char* section, const char* key) {
    const Yaml* const found = entry_of(root, section);
    const Yaml* const value = found ? entry_of(*found, key) : nullptr;
    if (!scalar_of(value).empty()) facts[name] = value->text;
    if (!value) return;
    for (const Yaml& item : value->items) {
      if (item.kind == Yaml::Kind::scalar) facts[name].push_back(item.text);
      // An item with a weight is a map with a path.
      if (const std::string path = scalar_of(entry_of(item, "path")); !path.empty()) facts[name].push_back(path);
    }
  };
  fact("preset", "model", "preset");
  fact("from", "model", "from");
  fact("train", "data", "train");
  fact("sequence", "data", "sequence");
  fact("batch", "train", "batch");
  fact("steps", "train", "steps");
  fact("optimizer", "train", "optimizer");
  fact("precision", "train", "precision");
  fact("seed", "run", "seed");
  const Yaml* const objective = entry_of(root, "objective");
  const std::string word = objective ? scalar_of(entry_of(*objective, "kind")) : "";
  facts["compares"] = std::ranges::any_of(kObjectives, [&](const ObjectiveRow& row) { return row.compares && row.word == word; });
  const Yaml* const curriculum = entry_of(root, "curriculum");
  if (!curriculum) return facts;
  for (const Yaml& entry : curriculum->items)  // metrics with limits in percentiles
    if (entry_of(entry, "metric") && scalar_of(entry_of(entry, "unit")) == "percentile")
      facts["percentiles"].push_back(scalar_of(entry_of(entry, "metric")));
  return facts;
}

// Returns the description and colour of every kind of op.
json op_legend() {
  json legend = json::object();
  for (const OpType* type : op_types())
    legend[std::string(type->name)] = {{"about", type->about}, {"colour", type->colour}, {"repeats", type->repeats}};
  return legend;
}

}  // namespace

json report_data(const std::filesystem::path& run_dir) {
  if (!std::filesystem::is_directory(run_dir))
    throw UserError({run_dir.string(), "", "a run directory",
                     std::filesystem::exists(run_dir) ? "a file" : "a path that does not exist",
                     "pass the folder that contains metrics.jsonl"});
  RunFiles files(run_dir);
  json config = files.load("config.yaml", [](const auto& path) {
    const std::string text = read_file(path);
    if (text.empty()) throw UserError({path.string(), "", "the settings of the run", "an empty file", ""});
    return json(text);
  });
  json facts = json::object();
  if (config.is_string()) {
    try {
      facts = facts_of(config.get<std::string>());
    } catch (const UserError& error) {  // the page still shows the configuration as text
      log::warn("{}", error.what());
    }
  }
  std::vector<StepMetrics> all;
  files.load("metrics.jsonl", [&](const auto& path) {
    all = read_metrics(path);
    return json();
  });
  auto read_trace = [](const auto& path) { return trace_data(parse_json(read_file(path), path.string())); };
  auto now = std::chrono::system_clock::now().time_since_epoch();
  std::filesystem::path whole = std::filesystem::absolute(run_dir).lexically_normal();
  json data{{"run", (whole.has_filename() ? whole : whole.parent_path()).filename().string()},
            {"written", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
            {"config", config},
            {"facts", facts},
            {"plan", files.load_json("plan.json")},
            {"summary", files.load_json("summary.json")},
            {"charts", charts()},
            {"curves", curves_of(all)},
            {"so_far", so_far(all)},
            {"experts", expert_series(all)},
            {"skipped", skipped_of(all)},
            {"samples", samples_of(all)},
            {"op_legend", op_legend()},
            {"trace", files.load("trace.json", read_trace)}};
  data["files"] = files.state();
  return data;
}

}  // namespace megalith

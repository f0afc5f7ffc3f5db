#include "train/prepare_curriculum.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "train/difficulties.h"

namespace megalith {
namespace {

// Which values each checkpoint stood for when the run began: {"runs/model": "loss-0123456789abcdef.metric"}.
std::filesystem::path record_of(const std::filesystem::path& run_dir) { return run_dir / "analysis" / "begun_with.json"; }

nlohmann::json read_record(const std::filesystem::path& run_dir) {
  const std::filesystem::path path = record_of(run_dir);
  if (!std::filesystem::exists(path)) return nlohmann::json::object();
  nlohmann::json record = try_parse_json(read_file(path));
  return record.is_object() ? record : nlohmann::json::object();
}

DifficultyRequest begun_with(const CurriculumSettings& entry, const nlohmann::json& record,
                             const std::filesystem::path& run_dir) {
  DifficultyRequest request = request_of(entry);
  const auto file = request.of_model() ? record.find(request.checkpoint) : record.end();
  if (file == record.end() || !file->is_string()) return request;
  const std::filesystem::path path = record_of(run_dir).replace_filename(file->get<std::string>());
  if (std::filesystem::exists(path)) request.kept = path.string();
  return request;
}

}  // namespace

void check_curriculum(const Config& config) {
  const nlohmann::json record = read_record(config.run.dir);
  for (size_t i = 0; i < config.curriculum.size(); i++)
    if (!config.curriculum[i].changes_length())
      check_request(begun_with(config.curriculum[i], record, config.run.dir), fmt::format("curriculum[{}]", i));
}

std::vector<Filter> prepare_filters(const Config& config, const RunDirectory& run, const Dataset& data, bool begun) {
  const nlohmann::json record = begun ? read_record(run.path()) : nlohmann::json::object();
  nlohmann::json used = nlohmann::json::object();
  Difficulties difficulties(config, run, data);
  std::vector<Filter> filters;
  for (const CurriculumSettings& entry : config.curriculum) {
    if (entry.changes_length()) continue;
    const DifficultyRequest request = begun_with(entry, record, run.path());
    MetricValues found = difficulties.of(request);
    if (request.of_model()) used[request.checkpoint] = found.path.filename().string();
    filters.push_back({entry, std::move(found.values)});
  }
  if (used != record) write_file_atomically(record_of(run.path()), print_json(used, 1) + '\n');
  return filters;
}

}  // namespace megalith

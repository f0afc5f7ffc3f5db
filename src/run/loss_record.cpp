#include "run/loss_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"

namespace megalith {
namespace {

std::filesystem::path record_of(const std::filesystem::path& run_dir) { return run_dir / "analysis" / "begun_with.json"; }

}  // namespace

LossRecord read_loss_record(const std::filesystem::path& run_dir) {
  LossRecord record;
  const std::filesystem::path path = record_of(run_dir);
  if (!std::filesystem::exists(path)) return record;
  const nlohmann::json json = try_parse_json(read_file(path));
  if (!json.is_object()) return record;
  for (const auto& [checkpoint, file] : json.items())
    if (file.is_string()) record[checkpoint] = file.get<std::string>();
  return record;
}

void write_loss_record(const std::filesystem::path& run_dir, const LossRecord& record) {
  write_file_atomically(record_of(run_dir), print_json(nlohmann::json(record), 1) + '\n');
}

DifficultyRequest request_in_run(const CurriculumSettings& entry, const LossRecord& record,
                                 const std::filesystem::path& run_dir) {
  DifficultyRequest request = request_of(entry);
  const auto file = request.of_model() ? record.find(request.checkpoint) : record.end();
  if (file == record.end()) return request;
  const std::filesystem::path path = record_of(run_dir).replace_filename(file->second);
  if (std::filesystem::exists(path)) request.kept = path.string();
  return request;
}

void check_curriculum(const Config& config) {
  const LossRecord record = read_loss_record(config.run.dir);
  for (size_t i = 0; i < config.curriculum.size(); i++)
    if (!config.curriculum[i].changes_length())
      check_request(request_in_run(config.curriculum[i], record, config.run.dir), fmt::format("curriculum[{}]", i));
}

}  // namespace megalith

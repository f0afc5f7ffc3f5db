#include "cli/run_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/mistakes.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/store.h"
#include "config/options.h"
#include "config/resolved.h"

namespace megalith {
namespace {

// Returns the place of a value that comes from the run to resume, which keeps its decisions for automatic settings. Returns
// nothing for other values.
std::optional<std::string> source_in_run(const std::string& key, const Config& config) {
  const std::filesystem::path run_dir = config.run.dir, file = run_dir / "config.yaml";
  const Option* option = find_option(key);
  std::error_code unreadable;
  if (!option || !std::filesystem::exists(file, unreadable)) return std::nullopt;
  if (list_checkpoints(run_dir / "checkpoints").empty()) return std::nullopt;
  try {
    if (keeps_decision(*option, load_config(file), config)) return source_of(key, file);
  } catch (const UserError&) {  // a damaged config.yaml is not the mistake to report here
  }
  return std::nullopt;
}

// A run is resumed with its settings file, not with its folder.
[[noreturn]] void refuse_folder(const std::filesystem::path& folder) {
  std::filesystem::path settings = settings_of_run(folder);
  if (settings.empty() && std::filesystem::exists(folder / "config.yaml")) settings = folder / "config.yaml";
  throw UserError({folder.string(), "", "the file with the settings of a run", "a folder",
                   settings.empty() ? "give a YAML file" : "give its settings: " + settings.string()});
}

}  // namespace

Config load_run_file(const std::string& path, const std::vector<std::string>& overrides) {
  if (std::filesystem::is_directory(path)) refuse_folder(path);
  const auto is_setting = [](const std::string& argument) { return argument.find('=') != std::string::npos; };
  if (!is_setting(path) || std::filesystem::exists(path)) return load_config(path, overrides);
  const auto file = std::ranges::find_if_not(overrides, is_setting);
  throw UserError({"command line", "", "the file with the settings before all key=value", path,
                   fmt::format("write {} {}", file == overrides.end() ? "RUN.yaml" : *file, path)});
}

UserError with_source(const UserError& error, const std::string& path, const std::vector<std::string>& overrides,
                      const Config& config) {
  if (const auto* several = dynamic_cast<const SeveralMistakes*>(&error)) {
    std::vector<UserError> placed;
    for (const UserError& mistake : several->all) placed.push_back(with_source(mistake, path, overrides, config));
    return SeveralMistakes(std::move(placed));
  }
  UserError::Parts parts = error.parts;
  const std::string key = parts.key.substr(0, parts.key.find('['));
  if (!parts.where.empty() || !(find_option(key) || is_section(key))) return error;
  parts.where = source_in_run(key, config).value_or(source_of(parts.key, path, overrides));
  return UserError(std::move(parts));
}

}  // namespace megalith

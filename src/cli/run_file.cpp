#include "cli/run_file.h"

#include <filesystem>
#include <optional>

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
  if (!option || !std::filesystem::exists(file) || list_checkpoints(run_dir / "checkpoints").empty()) return std::nullopt;
  try {
    if (keeps_decision(*option, load_config(file), config)) return source_of(key, file);
  } catch (const UserError&) {  // a damaged config.yaml is not the mistake to report here
  }
  return std::nullopt;
}

}  // namespace

UserError with_source(const UserError& error, const std::string& path, const std::vector<std::string>& overrides,
                      const Config& config) {
  UserError::Parts parts = error.parts;
  const std::string key = parts.key.substr(0, parts.key.find('['));
  if (!parts.where.empty() || !(find_option(key) || is_section(key))) return error;
  parts.where = source_in_run(key, config).value_or(source_of(parts.key, path, overrides));
  return UserError(std::move(parts));
}

}  // namespace megalith

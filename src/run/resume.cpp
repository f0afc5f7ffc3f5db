#include "run/resume.h"

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/parse.h"
#include "config/resolved.h"

namespace megalith {
namespace {

// As config.yaml has it. The folder need not be held.
std::optional<Config> saved_config(const std::filesystem::path& run_dir) {
  const std::filesystem::path file = run_dir / "config.yaml";
  if (!std::filesystem::exists(file)) return std::nullopt;
  return parse_config(read_file(file), file.string(), run_dir.filename().string());
}

// Throws a UserError if a setting differs that may not change, logs those that may.
void check_changes(const Config& saved, const Config& next) {
  std::string fixed;
  std::vector<std::string> harmless;
  for (const Difference& d : differences(saved, next)) {
    std::string change = fmt::format("{} from {} to {}", d.key, d.before, d.after);
    if (d.may_change) harmless.push_back(std::move(change));
    else fixed += (fixed.empty() ? "" : ", ") + change;
  }
  if (!fixed.empty())
    throw UserError({next.run.dir, "", "the settings that this run began with", fixed,
                     "set them back, or give another run.dir to begin anew"});
  for (const std::string& change : harmless) log::info("continues with {}", change);
}

}  // namespace

Config resume_config(const std::filesystem::path& run_dir, const Config& now, const Layout& layout) {
  const std::optional<Config> saved = saved_config(run_dir);
  if (!saved) return now;
  Config wanted = now;
  wanted.parallel.data = layout.data;
  Config next = keep_decisions(*saved, wanted);
  check_changes(*saved, next);
  if (saved->parallel != wanted.parallel) {
    next.train.micro_batch = now.train.micro_batch;
    next.train.threads = now.train.threads;
  }
  return next;
}

}  // namespace megalith

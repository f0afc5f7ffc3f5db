// The settings that a run is resumed with.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "config/config.h"
#include "layout/layout.h"

namespace megalith {

// Returns the settings that the run in `run_dir` began with, with the allowed changes of `now`. Returns only `now` if the
// run's config.yaml is gone. Keeps the decisions of the run, except those that depend on the layout if the layout has
// changed. `layout` is the layout of `now`. Throws a UserError that lists changed settings that must not change. Logs the
// other changes.
Config resume_config(const std::filesystem::path& run_dir, const Config& now, const Layout& layout);

// Logs the allowed changes of `resumed` from the settings that the run in `run_dir` has had until now.
void log_changes(const std::filesystem::path& run_dir, const Config& resumed);

// The settings that the run in `run_dir` has had until now, from its config.yaml. Empty if that file is gone. The caller
// does not need the lock of the folder.
std::optional<Config> saved_config(const std::filesystem::path& run_dir);

// Returns a warning if the learning rate jumps by more than a tenth because of the changes from `before` to `now`. `step`
// is the next step of the run (from 0, at least 1). Returns an empty text if the rate does not jump, or if the run is
// finished. `layers` is the number of layers of the model.
std::string describe_rate_jump(const Config& before, const Config& now, int64_t layers, int64_t step);

}  // namespace megalith

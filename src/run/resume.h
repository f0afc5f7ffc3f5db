// The settings that a run is resumed with.
#pragma once
#include <filesystem>

#include "config/config.h"
#include "layout/layout.h"

namespace megalith {

// The settings that the run in `run_dir` began with, with the changes in `now` that are allowed; `now` alone if its
// config.yaml is gone. Keeps the decisions of the run, but for those that depend on the layout if that has changed.
// `layout` is the layout of `now`. Throws a UserError that lists the settings that may not change; logs the others.
Config resume_config(const std::filesystem::path& run_dir, const Config& now, const Layout& layout);

}  // namespace megalith

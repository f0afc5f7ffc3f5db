// The arguments of all commands about a run: RUN.yaml KEY=VALUE...
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "config/parse.h"

namespace megalith {

// --interface of train and submit.
inline constexpr const char* kInterfaceHelp =
    "Network interface (such as eth0) or address on which the first of several hosts listens. Default: the interface that "
    "leads to the other hosts.";

inline CommandOption run_path(std::string& path) {
  return {"RUN.yaml", &path, "File that describes the run: model, data, training and other settings.", {.required = true}};
}
inline CommandOption run_overrides(std::vector<std::string>& overrides) {
  return {"KEY=VALUE", &overrides, "Settings that override the file, such as train.steps=20. Values are YAML."};
}

// Throws UserError for run.dir if the directory cannot be created.
void make_run_directory(const std::string& dir);

// Adds to an error the place of its key: in the run file, on the command line, or in the config.yaml of the resumed run.
// Returns the error unchanged if it already has a place, or if its key is not a setting.
UserError with_source(const UserError& error, const std::string& path, const std::vector<std::string>& overrides,
                      const Config& config);

// Reads the settings. Throws UserError if a setting stands before the file.
Config load_run_file(const std::string& path, const std::vector<std::string>& overrides);

// Calls `work(config)`. Adds the source of the value to mistakes that are found only then (data, folders, memory).
template <class Work>
auto from_run_file(const std::string& path, const std::vector<std::string>& overrides, const Work& work) {
  const Config config = load_run_file(path, overrides);
  try {
    return work(config);
  } catch (const UserError& error) {
    throw with_source(error, path, overrides, config);
  }
}

}  // namespace megalith

// The arguments of all commands about a run: RUN.yaml key=value...
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "config/options.h"
#include "config/parse.h"

namespace megalith {

// --interface of train and submit.
inline constexpr const char* kInterfaceHelp =
    "several hosts: interface or address of the first host to listen on; default: the one that leads to the other hosts";

inline CommandOption run_path(std::string& path) {
  return {"RUN.yaml", &path, "the run's settings", {.required = true}};
}
inline CommandOption run_overrides(std::vector<std::string>& overrides) {
  return {"key=value", &overrides, "settings that replace the file's (values are YAML)"};
}

// Throws UserError for run.dir if it cannot be made.
void make_run_directory(const std::string& dir);

// Calls `work(config)`. A mistake that is found only then (data, folders, memory) is still a mistake in the run file or on
// the command line: the error says which.
template <class Work>
auto from_run_file(const std::string& path, const std::vector<std::string>& overrides, const Work& work) {
  const Config config = load_config(path, overrides);
  try {
    return work(config);
  } catch (const UserError& error) {
    if (!error.parts.where.empty() || !(find_option(error.parts.key) || is_section(error.parts.key))) throw;
    UserError::Parts parts = error.parts;
    parts.where = path;
    for (const std::string& text : overrides)
      if (parts.key.starts_with(text.substr(0, text.find('=')))) parts.where = "command line";
    throw UserError(std::move(parts));
  }
}

}  // namespace megalith

// What commands about a run have in common: RUN.yaml key=value...
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/options.h"
#include "config/parse.h"

namespace megalith {

struct RunFile {
  std::shared_ptr<std::string> path;  // shared with the callback that CLI11 keeps
  std::shared_ptr<std::vector<std::string>> overrides;
};

inline RunFile add_run_file(CLI::App& command) {
  RunFile file{std::make_shared<std::string>(), std::make_shared<std::vector<std::string>>()};
  command.add_option("RUN.yaml", *file.path, "the run's settings")->required();
  command.add_option("key=value", *file.overrides, "settings that replace the file's (values are YAML)");
  return file;
}

// Does `work(config)`. What is found out only then (data, folders, memory) is still a mistake in a file: say in which.
template <class Work>
auto from_run_file(const std::string& path, const std::vector<std::string>& overrides, const Work& work) {
  Config config = load_config(path, overrides);
  try {
    return work(std::move(config));
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

#include "checkpoint/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace megalith {

namespace fs = std::filesystem;

bool is_run_folder(const fs::path& path) {
  std::error_code ignored;
  return std::ranges::any_of(std::initializer_list<const char*>{"config.yaml", "metrics.jsonl", "log.txt"},
                             [&](const char* name) { return fs::exists(path / name, ignored); });
}

fs::path run_meant(const fs::path& path) {
  if (const fs::path run = fs::path("runs") / path; is_run_folder(run)) return run;
  std::pair newest{fs::file_time_type::min(), fs::path()};
  std::error_code error, ignored;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (is_run_folder(it->path())) newest = std::max(newest, {fs::last_write_time(it->path(), ignored), it->path()});
  return newest.second;
}

fs::path settings_of_run(const fs::path& run, const fs::path& folder) {
  const fs::path name = (run.has_filename() ? run : run.parent_path()).filename();
  std::error_code ignored;
  for (const char* where : {"", "examples"})
    if (fs::path file = (folder / where / name).concat(".yaml"); fs::exists(file, ignored)) return file.lexically_normal();
  return {};
}

std::string how_to_train(const fs::path& run) {
  const fs::path settings = settings_of_run(run);
  return fmt::format("train it first: `megalith train {}`", settings.empty() ? "RUN.yaml" : settings.string());
}

}  // namespace megalith

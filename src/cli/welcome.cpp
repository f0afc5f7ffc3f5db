#include "cli/welcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/join.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/store.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

// One command and what it does. The text goes to the next line if the command is long.
std::string line(const std::string& command, const std::string& about) {
  constexpr size_t kColumn = 44;
  if (command.size() + 4 > kColumn) return fmt::format("  {}\n{:{}}{}\n", command, "", kColumn, about);
  return fmt::format("  {:<{}}{}\n", command, kColumn - 2, about);
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "config.yaml", error) && fs::exists(folder / "metrics.jsonl", error);
}

// Returns the runs in runs/, or the folder itself if it is a run. The newest first.
std::vector<fs::path> runs_in(const fs::path& folder) {
  if (is_run(folder)) return {folder};
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator it(folder / "runs", error), end; !error && it != end; it.increment(error))
    if (is_run(it->path())) runs.push_back(it->path());
  std::ranges::sort(runs, std::greater(), [](const fs::path& run) {
    std::error_code ignored;
    return fs::last_write_time(run / "metrics.jsonl", ignored);
  });
  return runs;
}

std::string shown(const fs::path& run) { return run.lexically_normal().string(); }

std::string list(const std::vector<fs::path>& runs) {
  std::vector<std::string> names;
  for (const fs::path& run : runs) names.push_back(shown(run));
  return some_of(names);
}

std::string with_runs(const std::string& program, const fs::path& folder, const std::vector<fs::path>& runs) {
  const std::string run = shown(runs.front());
  std::string text = fmt::format("Runs in this folder: {}\n", list(runs));
  if (const fs::path settings = settings_of_run(runs.front(), folder); !settings.empty())
    text += line(fmt::format("{} train {}", program, shown(settings)), "resume the newest run");
  if (!list_checkpoints(runs.front() / "checkpoints").empty())
    text += line(fmt::format("{} generate {} --prompt \"You may\"", program, run), "generate text with it");
  text += line(fmt::format("{} report {}", program, run), "write its report.html again");
  return text + "\n";
}

}  // namespace

std::string welcome(const std::string& program, const fs::path& folder) {
  const std::vector<fs::path> runs = runs_in(folder);
  return "Megalith trains transformer models that are too large or too slow for your machine.\n\n" +
         (runs.empty() ? "" : with_runs(program, folder, runs)) + "To start:\n" +
         line("make quickstart", "in the source folder: train a small model") +
         line(program + " train examples/quickstart.yaml 'data.train=[my.txt]'", "the same on your own text") +
         "\nTo look something up:\n" + line(program + " --help", "list the commands") +
         line(program + " COMMAND --help", "show examples and options of a command") +
         line(program + " config", "explain all settings of a run");
}

}  // namespace megalith

#include "checkpoint/store.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/hub_name.h"
#include "base/log.h"
#include "base/new_file.h"
#include "base/similar_file.h"
#include "checkpoint/directory_lock.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/verify.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-";
constexpr size_t digits = 8;

std::vector<fs::path> entries(const fs::path& dir) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error))
    if (it->is_directory(error)) paths.push_back(it->path());
  return paths;
}

// Renames it first, so that a crash halfway leaves no checkpoint with files missing.
void remove_checkpoint(const fs::path& dir) {
  fs::path aside = dir;
  aside += fmt::format(".tmp-{}", random_hex(8));
  std::error_code error;
  fs::rename(dir, aside, error);
  fs::remove_all(error ? dir : aside, error);
  if (error) log::warn("{}: cannot remove this old checkpoint: {}", dir.string(), error.message());
}

bool has_model(const fs::path& dir) {
  std::error_code error;
  return fs::exists(dir / "model.safetensors", error) ||
         fs::exists(dir / "model.safetensors.index.json", error);
}

// Folders of other programs have no manifest, so their bytes cannot be verified.
void check_as_written(const fs::path& dir) {
  std::error_code error;
  if (!fs::exists(dir / "manifest.json", error)) return;
  VerifyResult result = verify(dir, VerifyPart::model);
  if (result.ok()) return;
  const VerifyProblem& first = result.problems.front();
  throw UserError({dir.string(), first.file, "the bytes listed in manifest.json", first.what,
                   "use another checkpoint, or remove manifest.json if you changed the file on purpose"});
}

constexpr const char* kGiveFolder = "give the folder that has config.json and model.safetensors";

// Says which folder to give instead of a file: the folder of weights, or the run of a settings file.
std::string folder_instead_of(const fs::path& file) {
  std::error_code error;
  const fs::path run = fs::path("runs") / file.stem();
  if (file.extension() == ".yaml" && fs::exists(run, error)) return fmt::format("give the run: {}", run.string());
  if (file.has_parent_path() && has_model(file.parent_path()))
    return fmt::format("give its folder: {}", file.parent_path().string());
  return kGiveFolder;
}

struct NoModel {
  std::string got, hint;
};

// Says why a path has no model. A folder with an unsupported config.json throws the error about that file: other weights
// would not help.
NoModel why_no_model(const fs::path& path) {
  std::error_code error;
  const fs::path run = run_meant(path);
  const std::string suggestion = run.empty() ? "" : fmt::format("did you mean {}?", run.string());
  if (!fs::exists(path, error)) {
    const bool begun = path.parent_path().filename() == "runs" && similar_path(path).empty();
    return {"no such file or folder", !run.empty() ? suggestion : begun ? how_to_train(path) : where_to_get(path)};
  }
  if (!fs::is_directory(path, error)) return {"a file", folder_instead_of(path)};
  if (is_run_folder(path)) return {"a run without a checkpoint", how_to_train(path)};
  if (!run.empty()) return {"a folder of runs", suggestion};
  if (fs::exists(path / "config.json", error)) read_hf_config(path);
  return {"a folder without model.safetensors",
          fs::exists(path / "pytorch_model.bin", error)
              ? "convert pytorch_model.bin to safetensors with save_pretrained of transformers"
              : kGiveFolder};
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  return fmt::format("{}{:0{}}", prefix, step, digits);
}

std::optional<int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int64_t step = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (name.size() < digits || name[0] == '-' || error != std::errc() || end != name.data() + name.size())
    return std::nullopt;
  return step;
}

std::vector<Found> list_checkpoints(const fs::path& checkpoints) {
  std::vector<Found> found;
  for (const fs::path& path : entries(checkpoints))
    if (auto step = step_of_name(path.filename().string())) found.push_back({*step, path});
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.step > b.step; });
  return found;
}

std::optional<Found> newest_checkpoint(const fs::path& checkpoints) {
  const std::vector<Found> all = list_checkpoints(checkpoints);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

std::optional<Found> latest_valid(const fs::path& checkpoints,
                                  const std::function<void(const std::string&)>& report) {
  std::vector<std::string> damaged;
  std::optional<Found> valid;
  for (const Found& candidate : list_checkpoints(checkpoints)) {
    VerifyResult result = verify(candidate.dir);
    if (result.ok()) {
      valid = candidate;
      break;
    }
    size_t more = result.problems.size() - 1;
    damaged.push_back(fmt::format("checkpoint {} is damaged: {}{}", candidate.dir.filename().string(),
                                  show(result.problems.front()),
                                  more ? fmt::format(" (and {} more)", more) : ""));
  }
  for (const std::string& message : damaged)
    report(valid ? fmt::format("{}; using {} instead", message, valid->dir.filename().string())
                 : message + "; no other checkpoint is valid");
  return valid;
}

void prune(const fs::path& checkpoints, int64_t keep, int64_t saved_step) {
  for (const Found& found : list_checkpoints(checkpoints))
    if (found.step > saved_step) remove_checkpoint(found.dir);
  prune_older(checkpoints, keep, saved_step);
}

void prune_older(const fs::path& checkpoints, int64_t keep, int64_t step) {
  MEGALITH_ASSERT(keep >= 1);
  for (const Found& found : list_checkpoints(checkpoints))
    if (found.step <= step && keep-- <= 0) remove_checkpoint(found.dir);
}

int64_t remove_stale(const fs::path& checkpoints) {
  int64_t removed = 0;
  for (const fs::path& path : entries(checkpoints)) {
    std::string name = path.filename().string();
    size_t suffix = name.find(".tmp-");
    if (suffix == std::string::npos || !step_of_name(name.substr(0, suffix))) continue;
    DirectoryLock lock(path);
    if (!lock.held()) continue;
    std::error_code error;
    fs::remove_all(path, error);
    if (error) log::warn("{}: cannot remove this unfinished checkpoint: {}", path.string(), error.message());
    removed += !error;
  }
  return removed;
}

fs::path find_model_folder(const fs::path& path, const std::function<void(const std::string&)>& report) {
  if (has_model(path)) {
    if (std::error_code error; !fs::exists(path / "config.json", error))
      throw UserError({path.string(), "", "a folder with config.json and model.safetensors", "no config.json",
                       "copy the config.json of the model into the folder"});
    check_as_written(path);
    return path;
  }
  for (const fs::path& checkpoints : {path / "checkpoints", path}) {
    if (list_checkpoints(checkpoints).empty()) continue;
    if (auto found = latest_valid(checkpoints, report)) return found->dir;
    throw UserError({checkpoints.string(), "", "a valid checkpoint", "only damaged ones",
                     "give another checkpoint or run directory"});
  }
  const auto [got, hint] = why_no_model(path);
  throw UserError({path.string(), "", "a checkpoint, a run directory or a Hugging Face folder", got, hint});
}

}  // namespace megalith

// The checkpoints/ directory of a run: step-00000200 and so on, the newest valid one, and what can go.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

std::string checkpoint_name(int64_t step);                        // step-00000200
std::optional<int64_t> step_of_name(std::string_view file_name);  // empty: not a checkpoint's name

struct Found {
  int64_t step = 0;
  std::filesystem::path dir;
};

// Newest first; a missing directory has none. Nothing is opened.
std::vector<Found> list_checkpoints(const std::filesystem::path& checkpoints);

std::optional<Found> newest_checkpoint(const std::filesystem::path& checkpoints);  // empty: there is none

// The newest checkpoint whose every byte is as written (see verify.h). `report` gets one message for each
// newer one that is damaged: which file, why, and which checkpoint is used instead. Changes nothing on disk.
std::optional<Found> latest_valid(const std::filesystem::path& checkpoints,
                                  const std::function<void(const std::string&)>& report);

// To call after saving `saved_step`: removes all but the `keep` newest up to it, and those beyond it, which
// are of the future only because they were damaged and the run went back behind them. keep >= 1.
void prune(const std::filesystem::path& checkpoints, int64_t keep, int64_t saved_step);

// To call when a run resumes at `step`: removes all but the `keep` newest up to it, which a killed process may have left.
void prune_older(const std::filesystem::path& checkpoints, int64_t keep, int64_t step);

// Removes what dead processes left half-written (NAME.tmp-RANDOM). A living writer holds a lock on its
// directory. Returns how many were removed.
int64_t remove_stale(const std::filesystem::path& checkpoints);

// A checkpoint, a run directory or its checkpoints/ directory, or a Hugging Face folder -> the folder with
// the weights, newest valid for a run. UserError when there is none, and when a folder named directly has a manifest
// that its weights, config.json or tokenizer do not keep to (about 0.2 s a GB that is in the page cache). For generate,
// eval, export, import, model.from.
std::filesystem::path find_model_folder(const std::filesystem::path& path,
                                        const std::function<void(const std::string&)>& report);

}  // namespace megalith

// The checkpoints/ directory of a run: finds checkpoints (step-00000200 and so on) and removes old ones.
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
std::optional<int64_t> step_of_name(std::string_view file_name);  // empty if it is not the name of a checkpoint

struct Found {
  int64_t step = 0;
  std::filesystem::path dir;
};

// Returns the newest first, and nothing for a missing directory. Opens no file.
std::vector<Found> list_checkpoints(const std::filesystem::path& checkpoints);

std::optional<Found> newest_checkpoint(const std::filesystem::path& checkpoints);  // empty if there is none

// Returns the newest checkpoint of which every byte is valid (see verify.h). Calls `report` for each newer damaged one
// with a message: which file, why, and which checkpoint is used instead. Changes nothing on disk.
std::optional<Found> latest_valid(const std::filesystem::path& checkpoints,
                                  const std::function<void(const std::string&)>& report);

// Call it after saving `saved_step`. Keeps the `keep` newest checkpoints up to that step and removes older ones. Also
// removes checkpoints of later steps: they were damaged, and the run resumed from an earlier one. keep >= 1.
void prune(const std::filesystem::path& checkpoints, int64_t keep, int64_t saved_step);

// Call it when a run resumes at `step`. Keeps the `keep` newest checkpoints up to that step, and removes older ones that
// a killed process may have left.
void prune_older(const std::filesystem::path& checkpoints, int64_t keep, int64_t step);

// Removes unfinished checkpoints (NAME.tmp-RANDOM) of dead processes. A living writer holds a lock on its directory.
// Returns how many were removed.
int64_t remove_stale(const std::filesystem::path& checkpoints);

// Returns the folder with the weights. `path` is a checkpoint, a run directory or its checkpoints/ directory, or a
// Hugging Face folder. For a run, returns the newest valid checkpoint. Throws UserError if there is none. A folder named
// directly that has a manifest is verified: weights, config.json and tokenizer. This takes about 0.2 s per GB in the
// page cache. For generate, eval, export, import, model.from.
std::filesystem::path find_model_folder(const std::filesystem::path& path,
                                        const std::function<void(const std::string&)>& report);

}  // namespace megalith

// A curriculum may filter by losses of checkpoints. A run notes which file of losses each of them stood for when it began,
// and keeps to it: the checkpoint may change, or be gone.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "data/difficulty_request.h"

namespace megalith {

using LossRecord = std::map<std::string, std::string>;  // {"runs/model": "loss-0123456789abcdef.metric"}

LossRecord read_loss_record(const std::filesystem::path& run_dir);  // empty: there is none
void write_loss_record(const std::filesystem::path& run_dir, const LossRecord& record);

// What an entry filters by, in the run of that folder.
DifficultyRequest request_in_run(const CurriculumSettings& entry, const LossRecord& record,
                                 const std::filesystem::path& run_dir);

// UserError where an entry's metric is unknown, or names a file or a checkpoint that is not there: told before text is made
// into tokens, which may take long.
void check_curriculum(const Config& config);

}  // namespace megalith

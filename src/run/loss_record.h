// A curriculum may filter by losses of checkpoints. When a run begins, it records the file of losses of each checkpoint. It
// uses these files until it ends, because a checkpoint may change or disappear.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "data/difficulty_request.h"

namespace megalith {

using LossRecord = std::map<std::string, std::string>;  // {"runs/model": "loss-0123456789abcdef.metric"}

LossRecord read_loss_record(const std::filesystem::path& run_dir);  // empty if there is no record
void write_loss_record(const std::filesystem::path& run_dir, const LossRecord& record);

// Returns what a curriculum entry filters by, in the run in `run_dir`.
DifficultyRequest request_in_run(const CurriculumSettings& entry, const LossRecord& record,
                                 const std::filesystem::path& run_dir);

// Throws UserError if the metric of an entry is unknown, or names a file or checkpoint that does not exist. Call it before
// text is tokenized, which may take long.
void check_curriculum(const Config& config);

}  // namespace megalith

// What the folder of a run tells from outside.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

// True if `megalith train` has written to the folder.
bool is_run_folder(const std::filesystem::path& path);

// Returns the run that was probably meant by a path that is not a run: runs/first for first, the newest run for runs. Empty
// if no run fits.
std::filesystem::path run_meant(const std::filesystem::path& path);

// Returns the settings file of a run: run.dir is runs/NAME of NAME.yaml unless the file sets it. Looks in `folder` and its
// examples. Empty if there is no such file.
std::filesystem::path settings_of_run(const std::filesystem::path& run, const std::filesystem::path& folder = ".");

// Returns the command that trains a run which has no checkpoint yet: "train it first: `megalith train first.yaml`".
std::string how_to_train(const std::filesystem::path& run);

}  // namespace megalith

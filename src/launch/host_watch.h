// Ranks below the user's own mpirun or srun have no supervisor. The first rank of each host forks a process that watches
// the ranks of this host alone: a hang is named all the same, and ends the run.
#pragma once
#include <filesystem>

#include "launch/host_folder.h"

namespace megalith::launch {

// `seconds` is run.watchdog. The watch ends with the ranks, and removes the folder. On a hang the table goes to stderr
// and `log_file`, and the ranks of this host are killed; mpirun or srun then ends the others.
void fork_host_watch(const HostFolder& folder, int64_t seconds, const std::filesystem::path& log_file);

// What this start of the run is called, the same for all ranks of it: from what mpirun or srun say.
std::string joined_run_name();

}  // namespace megalith::launch

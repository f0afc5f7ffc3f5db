// Ranks that the user's own mpirun or srun started have no supervisor. So the first rank of each host forks a process
// that watches the ranks of this host. It reports a hang and ends the run.
#pragma once
#include <filesystem>

#include "launch/host_folder.h"

namespace megalith::launch {

// `seconds` is run.watchdog. The watch ends with the ranks and removes the folder. On a hang it writes the table of
// ranks to stderr and `log_file`, and kills the ranks of this host. mpirun or srun then ends the others.
void fork_host_watch(const HostFolder& folder, int64_t seconds, const std::filesystem::path& log_file);

// The name of this start of the run, the same for all its ranks. It is made from the variables of mpirun or srun.
std::string joined_run_name();

}  // namespace megalith::launch

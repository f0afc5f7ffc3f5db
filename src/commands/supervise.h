// Training on several ranks: starts other processes of this program.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"
#include "config/config.h"

namespace megalith {

struct StartedRanks {
  int ranks = 1;
  std::string hosts, interface;  // as on the command line; empty: this host, or the nodes of the Slurm job
};

// `train --ranks N`: this process becomes the supervisor of ranks that run `command`.
CommandResult supervise_training(const Config& config, const StartedRanks& started, std::vector<std::string> command);

}  // namespace megalith

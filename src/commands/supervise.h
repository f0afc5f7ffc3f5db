// Training on several ranks: starts other processes of this program.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"
#include "config/config.h"

namespace megalith {

// `train --ranks N`: this process becomes the supervisor of ranks that run `command`.
CommandResult supervise_training(const Config& config, int ranks, const std::string& hosts,
                                 std::vector<std::string> command);

}  // namespace megalith

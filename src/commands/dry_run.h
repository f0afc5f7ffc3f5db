// Implements `train --dry-run`: makes the plan and all checks that need no text. Writes no files.
#pragma once
#include "commands/commands.h"

namespace megalith {

// Throws UserError for a mistake. Otherwise rank 0 returns one JSON object or prints text.
CommandResult dry_run(const CommandContext& context, const TrainArguments& arguments);

}  // namespace megalith

// train --dry-run: everything that a mistake can be found by without text, and the plan. Nothing is written.
#pragma once
#include "commands/commands.h"

namespace megalith {

// UserError for a mistake; one object or text otherwise, from rank 0 alone.
CommandResult dry_run(const CommandContext& context, const TrainArguments& arguments);

}  // namespace megalith

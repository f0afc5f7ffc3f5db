// The command line: arguments in, exit code out. All errors are caught here and printed as one line.
#pragma once
#include "cli/engine_commands.h"

namespace megalith {

// `engine` null: this is the front program, which replaces itself by the engine program for the commands that need it.
int run_command_line(int argc, char** argv, const EngineCommands* engine);

}  // namespace megalith

// The command line: arguments in, exit code out. Everything that goes wrong ends here as one line.
#pragma once

namespace megalith {

int run_command_line(int argc, char** argv);

}  // namespace megalith

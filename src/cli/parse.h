// Parses the command line: chooses a command and fills in its options. Prints help.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace megalith {

struct ParsedLine {
  const Command* command = nullptr;  // null: the command line has no command
  bool json = false;                 // true if --json was given
  std::optional<int> exit_code;      // help or the version was printed: exit with this code
  std::string error;                 // the mistake in the arguments; empty: no mistake
};

// Borrows `commands`: the result points into them.
ParsedLine parse_command_line(int argc, char** argv, const std::vector<Command>& commands);

}  // namespace megalith

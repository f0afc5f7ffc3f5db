// The command line of the program: arguments in, the chosen command out, its options filled in.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace megalith {

struct ParsedLine {
  const Command* command = nullptr;  // null: none was named
  bool json = false;                 // --json was given
  std::optional<int> exit_code;      // help or the version was printed: exit with this code
  std::string error;                 // the mistake in the arguments; empty: no mistake
  std::string help;                  // of the whole program
};

// Borrows `commands`: the result points into them.
ParsedLine parse_command_line(int argc, char** argv, const std::vector<Command>& commands);

}  // namespace megalith

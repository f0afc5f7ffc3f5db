// Explains mistakes in a command line. CLI11 only lists the arguments that it does not expect.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"

namespace megalith {

// Returns what is wrong with the arguments after the program's name, and what to write instead. Empty if no known mistake
// is found.
std::string explain_arguments(const std::vector<Command>& commands, const std::vector<std::string>& arguments);

}  // namespace megalith

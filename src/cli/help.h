// Makes the help of a command from its data.
#pragma once
#include <string>

#include "cli/command.h"

namespace megalith {

// `call`: how the user calls the command, such as "megalith tokenizer train". Call this function before the command line is
// parsed: it shows the values of the option targets as defaults.
std::string help_text(const Command& command, const std::string& call);

}  // namespace megalith

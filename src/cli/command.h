// A command as data: its name, its texts, its options and what it does. help.cpp makes its help, and parse.cpp parses
// command lines with a list of commands. Only parse.cpp uses CLI11.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "launch/rank_process.h"

namespace megalith {

// The result of a command: how it ended and, for --json, one object.
struct CommandResult {
  ExitCode code = ExitCode::done;
  nlohmann::json json = nlohmann::json::object();  // null: printed already, by a rank
  std::string failure;                             // the error, if it is not printed yet
};

struct CommandContext {
  std::vector<std::string> command;     // this program and its arguments, to start it again
  std::string typed = "megalith";       // the program as the user named it
  launch::RankProcess* rank = nullptr;  // this process as a rank; there is always one
  bool json = false;                    // stdout is for one JSON object; the rest goes to stderr
};

// The variable that receives the value of an option. A bool is a flag, a vector takes several values, and an optional shows
// whether the option was given.
using OptionTarget = std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::optional<int64_t>*,
                                  std::vector<std::string>*>;

struct OptionRules {
  bool required = false;
  bool shows_default = false;           // the help shows the value that the target has before parsing
  bool one_value = false;               // list: takes only one value each time, because more arguments may follow
  char separator = '\0';                // list: separates values in one argument
  std::optional<double> least, most;    // a number in this range
  std::vector<std::string> words = {};  // the value must be one of these words
  std::string needs = {}, excludes = {};  // names of other options of the command that are listed before this one
};

struct CommandOption {
  std::string name;     // "--out DIR", "--dry-run", or without dashes a positional argument: "FILE"
  OptionTarget target;  // borrowed; `run` or `arguments` of the command keeps it alive
  std::string about;    // sentences: what it does, its unit, and "Default: ..." unless the rules show it
  OptionRules rules = {};
  std::string flags() const { return name.substr(0, name.find(' ')); }  // without the name of the value
};

struct Command {
  std::string name;
  std::string about;                  // one sentence
  std::string details;                // more sentences for its own help; a line that begins with a space is a sample
  std::vector<std::string> examples;  // two whole command lines that run with the files of docs/guides/first_hour.md
  std::vector<CommandOption> options = {};
  // Empty if another program runs the command, or if it only has subcommands.
  std::function<CommandResult(const CommandContext&)> run = {};
  std::vector<Command> subcommands = {};
  std::vector<std::string> one_required = {};      // at least one of these options must be given
  std::shared_ptr<const void> arguments = nullptr;  // owns the targets of the options if `run` is empty
};

inline constexpr const char* kModelPath =
    "Model: a run directory (its newest checkpoint is used), a checkpoint or a Hugging Face folder.";

// Prints text for people: on stdout, or on stderr with --json.
void print(const CommandContext& context, const std::string& text);

}  // namespace megalith

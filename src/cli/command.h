// A command as data: its name, its options and what it does. parse.cpp makes a command line of a list of them; it alone
// sees CLI11.
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

// What a command gives back: how it ended and, for --json, one object.
struct CommandResult {
  ExitCode code = ExitCode::done;
  nlohmann::json json = nlohmann::json::object();  // null: printed already, by a rank
  std::string failure;                             // what went wrong, where nobody has said it
};

struct CommandContext {
  std::vector<std::string> command;     // this program and its arguments, to start it again
  launch::RankProcess* rank = nullptr;  // this process as a rank; there is always one
  bool json = false;                    // stdout is for one JSON object; the rest goes to stderr
};

// Where the value of an option goes. A bool is a flag, a vector takes several values, an optional tells whether the
// option was given.
using OptionTarget = std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::optional<int64_t>*,
                                  std::vector<std::string>*>;

struct OptionRules {
  bool required = false;
  bool shows_default = false;           // in the help: what the target holds before parsing
  bool one_value = false;               // of a list: one value each time the option is given, as more arguments follow
  char separator = '\0';                // of a list: between values in one argument
  std::optional<double> least, most;    // a number in this range
  std::vector<std::string> words = {};  // one of these
  std::string needs = {}, excludes = {};  // names of other options of the command, which come before this one
};

struct CommandOption {
  std::string name;     // "--out", "-i,--interactive", or without dashes a positional argument: "FILE"
  OptionTarget target;  // borrowed; `run` or `arguments` of the command keeps it alive
  std::string about;
  OptionRules rules = {};
};

struct Command {
  std::string name, about;
  std::vector<CommandOption> options = {};
  // Empty if another program runs the command, or if it only has subcommands.
  std::function<CommandResult(const CommandContext&)> run = {};
  std::vector<Command> subcommands = {};
  std::vector<std::string> one_required = {};      // at least one of these options must be given
  std::shared_ptr<const void> arguments = nullptr;  // what the options point to, where `run` is empty
};

inline constexpr const char* kModelPath = "a run, a checkpoint or a Hugging Face folder";  // what CKPT may name

// Prints text for people: on stdout, or on stderr where stdout is JSON's.
void print(const CommandContext& context, const std::string& text);

}  // namespace megalith

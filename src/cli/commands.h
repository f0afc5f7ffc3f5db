// The commands of the binary. Each is set up on the CLI app and leaves what to do in `action`.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
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
  std::vector<std::string> command;        // this program and its arguments, to start it again
  launch::RankProcess* rank = nullptr;     // this process as a rank; there is always one
  bool json = false;                       // stdout is for one JSON object; the rest goes to stderr
  std::function<CommandResult()> action;   // set by the command that was named
};

void add_train(CLI::App& app, CommandContext& context);       // train, report
void add_submit(CLI::App& app, CommandContext& context);      // submit
void add_analyze(CLI::App& app, CommandContext& context);     // analyze
void add_outlook(CLI::App& app, CommandContext& context);     // memory, simulate
void add_text(CLI::App& app, CommandContext& context);        // tokenize, shards, tokenizer train
void add_model(CLI::App& app, CommandContext& context);       // import, export, checkpoint verify, and these two:
void add_generate(CLI::App& app, CommandContext& context);
void add_eval(CLI::App& app, CommandContext& context);
void add_reference(CLI::App& app, CommandContext& context);   // config, presets, doctor

// Prints text for people: on stdout, or on stderr where stdout is JSON's.
void print(const CommandContext& context, const std::string& text);

}  // namespace megalith

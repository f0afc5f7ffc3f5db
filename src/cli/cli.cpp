#include "cli/cli.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "config/nearest.h"
#include "launch/supervisor.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

bool put(std::FILE* out, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0;
}

// What a command says is its result: one that is lost (a full disk behind a redirection) is no success.
void put_result(const std::string& text) {
  if (!put(stdout, text)) throw Fault(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

// Text from a model and names of files may be any bytes; JSON takes UTF-8 alone.
std::string json_line(const nlohmann::json& object) {
  return print_any_json(object) + "\n";
}

// The rank's own end says it: once for all ranks.
int fail(const CommandContext& context, ExitCode code, const char* kind, const std::string& message) {
  const launch::Environment& ranks = context.rank->environment();
  if (context.json && ranks.rank == 0 && ranks.role != launch::Role::supervised)
    put(stdout, json_line({{"error", message}, {"exit_code", static_cast<int>(code)}}));
  return context.rank->end(code, kind + message);
}

// The first line of LibTorch's message: the rest is a stack.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// An unknown command first: CLI11 would only list all that follows it as unexpected.
std::string what_is_wrong(const CLI::App& app, int argc, char** argv, const CLI::ParseError& error) {
  std::string command;
  for (int i = 1; i < argc && command.empty(); i++)
    if (argv[i][0] != '-') command = argv[i];
  if (command.empty()) return std::string(error.what()) + "; see megalith --help";
  std::vector<std::string_view> known;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) known.push_back(each->get_name());
  if (std::find(known.begin(), known.end(), command) != known.end())
    return fmt::format("{}; see megalith {} --help", error.what(), command);
  std::string_view near = nearest(command, known);
  return fmt::format("expected a command, got {}; {}", command,
                     near.empty() ? "megalith --help lists them" : fmt::format("did you mean {}?", near));
}

int run_as(launch::RankProcess& rank, int argc, char** argv) {
  install_allocator();
  CLI::App app("Megalith trains transformer models that are too big for the machine at hand.", "megalith");
  app.require_subcommand(0, 1);
  app.fallthrough();
  CommandContext context;
  context.rank = &rank;
  context.command = launch::own_command(argc, argv);
  app.add_flag("--json", context.json, "print one JSON object on stdout, everything else on stderr");
  app.set_version_flag("--version", MEGALITH_VERSION);
  add_train(app, context);
  add_submit(app, context);
  add_analyze(app, context);
  add_outlook(app, context);
  add_text(app, context);
  add_model(app, context);
  add_reference(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    return fail(context, ExitCode::user, "command line: ", what_is_wrong(app, argc, argv, error));
  }
  log::start(/*quiet=*/false);
  if (!context.action) {
    put(stdout, app.help());
    return static_cast<int>(ExitCode::user);
  }
  try {
    CommandResult result = context.action();
    if (!result.failure.empty()) return fail(context, result.code, "", result.failure);
    if (context.json && !result.json.is_null() && rank.environment().rank == 0) put_result(json_line(result.json));
    return rank.end(result.code, "");
  } catch (const UserError& error) {
    return fail(context, ExitCode::user, "", error.what());
  } catch (const Interrupted& stopped) {
    return fail(context, ExitCode::interrupted, "", stopped.what());
  } catch (const Fault& fault) {
    return fail(context, ExitCode::fault, "", fault.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(context, ExitCode::fault, "", error.what());
  } catch (const std::bad_alloc&) {
    return fail(context, ExitCode::fault, "", "out of memory");
  } catch (const c10::Error& error) {
    return fail(context, ExitCode::bug, "a bug of ours, please report it: ", first_line(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return fail(context, ExitCode::bug, "a bug of ours, please report it: ", error.what());
  }
}

}  // namespace

void print(const CommandContext& context, const std::string& text) {
  if (context.json) put(stderr, text);
  else put_result(text);
}

int run_command_line(int argc, char** argv) {
  try {
    launch::RankProcess rank(launch::environment());  // before there are threads
    return run_as(rank, argc, argv);
  } catch (const Fault& fault) {
    std::fprintf(stderr, "megalith: %s\n", fault.what());
    return static_cast<int>(ExitCode::fault);
  }
}

}  // namespace megalith

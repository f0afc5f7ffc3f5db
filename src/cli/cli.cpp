#include "cli/cli.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/failure.h"
#include "base/json.h"
#include "base/log.h"
#include "base/process_start.h"
#include "cli/light_commands.h"
#include "cli/parse.h"
#include "cli/welcome.h"
#include "launch/supervisor.h"

namespace megalith {
namespace {

bool put(std::FILE* out, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0;
}

// Prints the result of a command. If the result is lost (a full disk behind a redirection), the command fails with a Fault.
// If nothing reads the output any more (`| head`), SIGPIPE ends the program, as with other Unix tools.
void put_result(const std::string& text) {
  if (put(stdout, text)) return;
  if (errno == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw Fault(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

// Text from a model and file names may contain any bytes, but JSON allows only UTF-8.
std::string json_line(const nlohmann::json& object) {
  return print_any_json(object) + "\n";
}

// RankProcess::end prints the message, once for all ranks.
int fail(const CommandContext& context, ExitCode code, const char* kind, const std::string& message) {
  const launch::Environment& ranks = context.rank->environment();
  if (context.json && ranks.rank == 0 && ranks.role != launch::Role::supervised)
    put(stdout, json_line({{"error", message}, {"exit_code", static_cast<int>(code)}}));
  return context.rank->end(code, kind + message);
}

std::vector<Command> all_commands(const EngineCommands* engine) {
  return {train_command(engine),    report_command(),         submit_command(),       analyze_command(engine),
          memory_command(engine),   simulate_command(engine), tokenize_command(),     shards_command(),
          tokenizer_command(),      generate_command(engine), eval_command(engine),   embed_command(engine),
          import_command(),
          export_command(),   checkpoint_command(),     config_command(),       presets_command(),
          doctor_command(engine)};
}

// Replaces the program of this process, with the same arguments. Returns if that fails; errno says why.
void become(const std::string& program, const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments[0] = const_cast<char*>(program.c_str());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
}

// Threads of an OpenMP team spin for milliseconds while they wait for each other. On a busy machine they hold the cores
// that the others need: small models train at a quarter of their speed. libgomp reads the limit when a program starts.
// Returns true if this process has set it.
bool limit_spinning() {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return false;
  return ::setenv("GOMP_SPINCOUNT", "2000", /*overwrite=*/0) == 0;
}

// Replaces the front program (`megalith`) by the engine program. Throws a Fault if there is no engine program.
[[noreturn]] void become_engine(const std::vector<std::string>& command) {
  limit_spinning();
  const std::string engine = launch::engine_path();
  become(engine, command);
  throw Fault(fmt::format("cannot start {}: {}; it must be in the same folder as megalith (make build builds both)", engine,
                          std::strerror(errno)));
}

// For an engine program that was started directly, for example by a user's mpirun. Starts the program again, because
// libgomp is already loaded.
void start_again_with_limit(const std::vector<std::string>& command) {
  if (limit_spinning()) become(std::filesystem::read_symlink("/proc/self/exe"), command);
}

const char* kind_of(const Failure& failure) {
  return failure.code == ExitCode::bug ? "a bug of ours, please report it: " : "";
}

// Adds the place "command line" to an error about an option of a command.
UserError option_with_source(const UserError& error) {
  if (!error.parts.where.empty() || !error.parts.key.starts_with("-")) return error;
  UserError::Parts parts = error.parts;
  parts.where = "command line";
  return UserError(std::move(parts));
}

int run_chosen(const CommandContext& context, const ParsedLine& line) {
  if (!line.error.empty()) return fail(context, ExitCode::user, "command line: ", line.error);
  log::start(/*quiet=*/false);
  if (!line.command) {
    if (context.json) return fail(context, ExitCode::user, "command line: ", "expected a command; see megalith --help");
    put(stdout, welcome(context.typed, "."));
    return static_cast<int>(ExitCode::user);
  }
  try {
    CommandResult result = line.command->run(context);
    if (!result.failure.empty()) return fail(context, result.code, "", result.failure);
    if (context.json && !result.json.is_null() && context.rank->environment().rank == 0)
      put_result(json_line(result.json));
    return context.rank->end(result.code, "");
  } catch (const UserError& error) {
    return fail(context, ExitCode::user, "", option_with_source(error).what());
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    return fail(context, failure.code, kind_of(failure), failure.text);
  }
}

}  // namespace

void print(const CommandContext& context, const std::string& text) {
  if (context.json) put(stderr, text);
  else put_result(text);
}

int run_command_line(int argc, char** argv, const EngineCommands* engine) {
  prepare_process();
  try {
    CommandContext context;
    context.command = launch::own_command(argc, argv);
    if (argc > 0) context.typed = argv[0];
    const std::vector<Command> commands = all_commands(engine);
    const ParsedLine line = parse_command_line(argc, argv, commands);
    if (line.exit_code) return *line.exit_code;
    if (line.command && !line.command->run) become_engine(context.command);
    if (line.command && engine) start_again_with_limit(context.command);
    launch::RankProcess rank(launch::environment());  // before there are threads
    context.rank = &rank;
    context.json = line.json;
    if (engine) engine->start();
    return run_chosen(context, line);
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    std::fprintf(stderr, "megalith: %s%s\n", kind_of(failure), failure.text.c_str());
    return static_cast<int>(failure.code);
  }
}

}  // namespace megalith

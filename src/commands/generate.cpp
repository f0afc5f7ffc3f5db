#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "commands/commands.h"
#include "commands/loaded_model.h"
#include "inference/generate.h"
#include "text/json_records.h"

namespace megalith {
namespace {

std::string prompt_of(const nlohmann::json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object() || !value.contains("prompt") || !value["prompt"].is_string())
    throw UserError({where, "prompt", "a text, or a JSON object with a text in the field prompt", "another value", ""});
  return value["prompt"].get<std::string>();
}

// Reads one prompt per line; from JSON, one per record.
std::vector<std::string> read_prompts(const std::string& path) {
  std::vector<std::string> prompts;
  if (is_json_name(path)) {
    for_each_json_record(path, [&](const nlohmann::json& value, const std::string& where) {
      prompts.push_back(prompt_of(value, where));
    });
  } else {
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!line.empty()) prompts.push_back(line);
    }
  }
  if (prompts.empty()) throw UserError({path, "--prompts", "at least one prompt", "an empty file", ""});
  return prompts;
}

volatile std::sig_atomic_t interrupted = 0;

// While this object exists, Ctrl-C only sets a flag and ends a pending read.
class AnswerInterrupt {
 public:
  AnswerInterrupt() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &former_);
  }
  ~AnswerInterrupt() { sigaction(SIGINT, &former_, nullptr); }
  AnswerInterrupt(const AnswerInterrupt&) = delete;
  AnswerInterrupt& operator=(const AnswerInterrupt&) = delete;

 private:
  struct sigaction former_ {};
};

enum class Line { read, cut, end };

Line read_line(std::string& line) {
  line.clear();
  for (;;) {
    char c = 0;
    ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && interrupted) return Line::cut;
    if (got <= 0) return line.empty() ? Line::end : Line::read;
    if (c == '\n') return Line::read;
    line += c;
  }
}

// Reads lines and prints a continuation of each, until the end of input. An empty line continues the last text.
CommandResult run_interactively(LoadedModel& model, const GenerateSettings& settings, const CommandContext& context) {
  AnswerInterrupt guard;
  const bool terminal = ::isatty(STDIN_FILENO);
  if (terminal)
    print(context, "Type a text to continue it. An empty line continues the last text. Ctrl-C stops an answer, Ctrl-D ends "
                   "the session.\n");
  std::string line, text;
  int64_t answers = 0;
  for (;;) {
    if (terminal) print(context, "> ");
    interrupted = 0;
    Line got = read_line(line);
    if (got == Line::end) break;
    if (got == Line::cut) {
      print(context, "\n");
      continue;
    }
    if (!line.empty()) text = line;
    print(context, text);
    GenerateHooks hooks;
    hooks.show = [&](size_t, const std::string& piece) { print(context, piece); };
    hooks.interrupted = [] { return interrupted != 0; };
    text += generate(*model.engine, *model.tokenizer, {text}, settings, hooks).front().text;
    print(context, "\n");
    answers++;
  }
  if (terminal) print(context, "\n");
  return {ExitCode::done, {{"answers", answers}}};
}

// Refuses prompts that are longer than the sliding window. We would cut off their beginning. The transformers library
// would not: its attention still sees the beginning through several layers.
void check_prompts(const LoadedModel& model, const std::vector<std::string>& prompts) {
  const ModelShape& shape = model.engine->shape();
  if (!shape.window_shortens()) return;
  for (const std::string& prompt : prompts)
    if (const int64_t size = std::ssize(model.tokenizer->encode(prompt, /*add_special=*/true)); size > shape.window)
      throw UserError({"", "--prompt", fmt::format("at most the model's sliding_window of {} tokens", shape.window),
                       fmt::format("{}", size), "shorten the prompt: sliding-window attention is not supported"});
}

GenerateSettings settings_of(const GenerateArguments& a) {
  return {.tokens = a.tokens,
          .sampling = {.temperature = a.temperature,
                       .top_k = a.top_k,
                       .top_p = a.top_p,
                       .repetition_penalty = a.repetition_penalty},
          .stop = a.stop,
          .seed = a.seed};
}

}  // namespace

CommandResult run_generate(const CommandContext& context, const GenerateArguments& arguments) {
  const GenerateSettings settings = settings_of(arguments);
  for (const std::string& stop : settings.stop)
    if (stop.empty()) throw UserError({"command line", "--stop", "a text", "an empty text", "remove it"});
  if (arguments.interactive && (context.json || !arguments.prompts.empty() || !arguments.prompts_file.empty()))
    throw UserError({"command line", "--interactive", "no --prompt, --prompts or --json beside it", "one of them",
                     "remove them: an interactive session reads prompts line by line"});
  std::vector<std::string> prompts = arguments.prompts;
  if (!arguments.prompts_file.empty())
    for (std::string& prompt : read_prompts(arguments.prompts_file)) prompts.push_back(std::move(prompt));
  if (prompts.empty()) prompts.emplace_back();
  LoadedModel model = load_with_tokenizer(arguments.path);
  check_generates(model.engine->shape());  // before anything is printed
  check_prompts(model, prompts);
  if (arguments.interactive) return run_interactively(model, settings, context);

  const bool single = prompts.size() == 1;
  GenerateHooks hooks;
  if (single) {
    print(context, prompts.front());
    hooks.show = [&](size_t, const std::string& piece) { print(context, piece); };
  }
  std::vector<Generated> results = generate(*model.engine, *model.tokenizer, prompts, settings, hooks);
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < results.size(); i++) {
    if (!single) print(context, fmt::format("==> {} of {} <==\n{}{}", i + 1, results.size(), prompts[i], results[i].text));
    print(context, "\n");
    list.push_back({{"prompt", prompts[i]},
                    {"text", prompts[i] + results[i].text},
                    {"continuation", results[i].text},
                    {"tokens", results[i].tokens},
                    {"end", name(results[i].end)}});
  }
  if (single) return {ExitCode::done, list.front()};
  return {ExitCode::done, {{"results", list}}};
}

}  // namespace megalith

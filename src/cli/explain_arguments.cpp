#include "cli/explain_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/either.h"
#include "base/join.h"
#include "base/nearest.h"
#include "config/known_elsewhere.h"
#include "config/options.h"

namespace megalith {
namespace {

using Arguments = std::span<const std::string>;

// Words of other programs for our commands and options, as plain words with spaces between them.
struct OtherWord {
  std::string_view command, theirs, ours;  // `command` empty: `theirs` are commands
};
constexpr std::string_view kSettings = "RUN.yaml";  // in place of a command: all that take settings
constexpr OtherWord kOtherWords[] = {
    {"", "training finetune pretrain fit run resume", "train"},
    {"", "infer inference sample chat predict complete", "generate"},
    {"", "evaluate test validate perplexity", "eval"},
    {"", "convert", "import or export"},
    {"", "plan estimate", "memory"},
    {"", "preprocess encode", "tokenize"},
    {"", "models list", "presets"},
    {"", "help", "--help"},
    {"train", "nproc nprocpernode numprocesses numgpus gpus worldsize n np", "--ranks"},
    {"train", "resume resumefromcheckpoint continue", "no option: repeat the command and the run resumes"},
    {kSettings, "set override overrides", "key=value without an option, after the settings file"},
    {kSettings, "config c configfile settings yaml f", "the settings file without an option: megalith train RUN.yaml"},
    {"generate", "maxnewtokens maxtokens maxlength length numtokens n", "--tokens"},
    {"generate", "p text input", "--prompt"},
    {"generate", "t temp", "--temperature"},
    {"generate", "k", "--top-k"},
    {"generate", "model checkpoint ckpt", "the folder without an option: megalith generate FOLDER"},
    {"eval", "model checkpoint ckpt", "the folder without an option: megalith eval FOLDER"},
    {"eval", "text file input perplexity ppl", "--data"},
    {"export", "output outputdir o", "--out"},
    {"export", "model checkpoint ckpt from input", "the folder without an option: megalith export FOLDER --out NEW"},
    {"import", "output outputdir o", "--out"},
    {"import", "model checkpoint ckpt from input", "the folder without an option: megalith import FOLDER --out NEW"},
    {"tokenizer train", "output outputdir o", "--out"},
    {"tokenizer train", "vocabsize size", "--vocab"},
};

std::string_view other_word(std::string_view command, std::string_view word) {
  const std::string wanted = fmt::format(" {} ", plain_word(word));
  for (const OtherWord& row : kOtherWords)
    if (row.command == command && fmt::format(" {} ", row.theirs).find(wanted) != std::string::npos) return row.ours;
  return {};
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument.front() == '-'; }
bool is_settings_file(const std::string& argument) { return argument.ends_with(".yaml") || argument.ends_with(".yml"); }
bool is_for_all_commands(const std::string& argument) { return argument == "--json" || argument == "--version"; }

// "--train.lr=1e-3" is the name "train.lr" and the value "1e-3". The value may also be the next argument.
struct GivenOption {
  std::string dashed, name;
  std::optional<std::string> value;
};
GivenOption given_option(Arguments from_here) {
  const std::string& all = from_here.front();
  const std::string dashed = all.substr(0, all.find('='));
  GivenOption given{dashed, dashed.substr(dashed.find_first_not_of('-')), std::nullopt};
  if (dashed.size() < all.size()) given.value = all.substr(dashed.size() + 1);
  else if (from_here.size() > 1 && !from_here[1].starts_with("--") && !is_settings_file(from_here[1]) &&
           from_here[1].find('=') == std::string::npos)
    given.value = from_here[1];
  return given;
}

std::vector<std::string> names_of(const Command& command) {
  std::vector<std::string> names;
  for (const CommandOption& option : command.options)
    for (std::string rest = option.flags(); !rest.empty();) {  // "-i,--interactive"
      const size_t comma = std::min(rest.find(','), rest.size());
      if (rest.starts_with('-')) names.push_back(rest.substr(0, comma));
      rest.erase(0, comma + 1);
    }
  return names;
}

bool takes_settings(const Command& command) {
  return std::ranges::find(command.options, "KEY=VALUE", &CommandOption::name) != command.options.end();
}

// Returns what to write instead of an option that the command does not have. `typed`: "train", "tokenizer train".
std::string instead_of(const GivenOption& given, const Command& command, const std::string& typed) {
  for (const std::string_view of : {std::string_view(typed), takes_settings(command) ? kSettings : typed})
    if (const std::string_view ours = other_word(of, given.name); !ours.empty()) return fmt::format("use {}", ours);
  const std::vector<std::string> names = names_of(command);
  std::vector<std::string_view> words;
  for (std::string_view name : names) words.push_back(name.substr(name.find_first_not_of('-')));
  if (const std::string_view near = nearest(given.name, words); !near.empty() && given.name.find('.') == std::string::npos)
    return fmt::format("did you mean --{}?", near);
  if (!takes_settings(command)) return "";
  if (const Option* option = option_meant(given.name))
    return fmt::format("write {}={} without dashes, after the settings file", option->name, given.value.value_or("VALUE"));
  return advice_for_key(given.name).value_or("");
}

// Explains the first option that the command does not have.
std::string explain_options(const Command& command, const std::string& typed, Arguments arguments) {
  const std::vector<std::string> known = names_of(command);
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!is_option(arguments[i]) || is_for_all_commands(arguments[i])) continue;
    const GivenOption given = given_option(arguments.subspan(i));
    if (given.name.empty() || std::ranges::find(known, given.dashed) != known.end()) continue;
    if (const std::string hint = instead_of(given, command, typed); !hint.empty())
      return fmt::format("{}: unknown option; {}", given.dashed, hint);
  }
  return "";
}

// Options whose value newcomers write without the option.
struct LeftOut {
  std::string_view command, option;
};
constexpr LeftOut kLeftOut[] = {{"generate", "--prompt"}, {"eval", "--data"}, {"export", "--out"}, {"import", "--out"}};

// Returns the arguments that belong to no option.
std::vector<std::string> plain_arguments(const Command& command, Arguments arguments) {
  std::vector<std::string> plain;
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!is_option(arguments[i])) {
      plain.push_back(arguments[i]);
      continue;
    }
    const auto option = std::ranges::find_if(command.options, [&](const CommandOption& each) {
      return each.name.starts_with('-') && each.flags().ends_with(arguments[i]);
    });
    if (option == command.options.end() || std::holds_alternative<bool*>(option->target)) continue;
    const bool takes_many = std::holds_alternative<std::vector<std::string>*>(option->target) && !option->rules.one_value;
    i++;
    while (takes_many && i + 1 < arguments.size() && !is_option(arguments[i + 1])) i++;
  }
  return plain;
}

// Explains an argument that belongs to no option if the command takes fewer of them.
std::string explain_left_out(const Command& command, Arguments arguments) {
  const auto row = std::ranges::find(kLeftOut, command.name, &LeftOut::command);
  const std::vector<std::string> plain = plain_arguments(command, arguments);
  const auto taken = static_cast<size_t>(
      std::ranges::count_if(command.options, [](const CommandOption& option) { return !option.name.starts_with('-'); }));
  if (row == std::end(kLeftOut) || plain.size() <= taken) return "";
  const std::string& extra = plain[taken];
  const char* quote = extra.find(' ') == std::string::npos ? "" : "\"";
  return fmt::format("{0}: unexpected; write {1} {2}{0}{2}", extra, row->option, quote);
}

const Command* find_command(const std::vector<Command>& commands, const std::string& name) {
  const auto found = std::ranges::find(commands, name, &Command::name);
  return found == commands.end() ? nullptr : &*found;
}

// Explains the word after a command that only has subcommands.
std::string explain_subcommand(const Command& command, Arguments arguments) {
  std::vector<std::string_view> names;
  for (const Command& below : command.subcommands) names.push_back(below.name);
  return fmt::format("expected {} after {}, got {}; for example: {}", either(names), command.name,
                     arguments.empty() ? "nothing" : arguments.front(), command.examples.front());
}

// Explains a command line that does not begin with a command.
std::string explain_command(const std::vector<Command>& commands, Arguments arguments) {
  const auto words = std::ranges::find_if(arguments, [](const std::string& each) { return !is_option(each); });
  const std::string first = words == arguments.end() ? "" : *words;
  std::vector<std::string_view> known;
  for (const Command& each : commands) known.push_back(each.name);
  std::string_view near = other_word("", first);
  if (near.empty()) near = nearest(first, known);
  if (!near.empty()) return fmt::format("expected a command, got {}; did you mean {}?", first, near);
  // The command is missing, or stands after its options.
  const auto command =
      std::ranges::find_if(arguments, [&](const std::string& each) { return find_command(commands, each) != nullptr; });
  const std::string& begin = arguments.front();
  const bool for_train = command == arguments.end() && std::ranges::any_of(arguments, is_settings_file);
  if ((is_option(begin) || is_settings_file(begin)) && (command != arguments.end() || for_train)) {
    std::vector<std::string> line{"megalith", for_train ? "train" : *command};
    for (auto each = arguments.begin(); each != arguments.end(); ++each)
      if (each != command) line.push_back(*each);
    return fmt::format("expected the command first, got {}; write {}", begin, join(line, " "));
  }
  return first.empty() ? "" : fmt::format("expected a command, got {}; megalith --help lists them", first);
}

}  // namespace

std::string explain_arguments(const std::vector<Command>& commands, const std::vector<std::string>& arguments) {
  Arguments rest = arguments;
  while (!rest.empty() && is_for_all_commands(rest.front())) rest = rest.subspan(1);
  if (rest.empty()) return "";
  const Command* command = find_command(commands, rest.front());
  if (!command) return explain_command(commands, rest);
  for (const Command& below : command->subcommands)
    if (rest.size() > 1 && rest[1] == below.name)
      return explain_options(below, fmt::format("{} {}", command->name, below.name), rest.subspan(2));
  if (command->options.empty() && !command->subcommands.empty()) return explain_subcommand(*command, rest.subspan(1));
  const std::string unknown = explain_options(*command, command->name, rest.subspan(1));
  return unknown.empty() ? explain_left_out(*command, rest.subspan(1)) : unknown;
}

}  // namespace megalith

#include "cli/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "base/join.h"
#include "cli/help.h"
#include "config/nearest.h"

namespace megalith {
namespace {

using HelpTexts = std::map<const CLI::App*, std::string>;

// A range check. CLI11's own check prints its limits with 300 digits.
CLI::Validator number_between(double least, std::optional<double> most) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least &&
            value <= most.value_or(std::numeric_limits<double>::infinity()))
          return std::string();
        return fmt::format("expected a number from {}{}, got {}", least, most ? fmt::format(" to {}", *most) : "", text);
      },
      "");
}

CLI::Option* add_target(CLI::App& app, const CommandOption& option) {
  const std::string name = option.name.substr(0, option.name.find(' '));  // without the name of the value
  return std::visit(
      [&](auto* target) -> CLI::Option* {
        if constexpr (std::is_same_v<decltype(target), bool*>) return app.add_flag(name, *target);
        else return app.add_option(name, *target);
      },
      option.target);
}

void add_option(CLI::App& app, const CommandOption& option) {
  const OptionRules& rules = option.rules;
  CLI::Option* added = add_target(app, option);
  if (rules.required) added->required();
  if (rules.separator != '\0') added->delimiter(rules.separator);
  if (rules.one_value) added->allow_extra_args(false);
  if (rules.least) added->check(number_between(*rules.least, rules.most));
  if (!rules.words.empty()) added->check(CLI::IsMember(rules.words));
  if (!rules.needs.empty()) added->needs(app.get_option(rules.needs));
  if (!rules.excludes.empty()) added->excludes(app.get_option(rules.excludes));
}

void add_command(CLI::App& parent, const Command& command, const std::string& call, HelpTexts& helps,
                 const Command*& chosen) {
  CLI::App* app = parent.add_subcommand(command.name);
  helps[app] = help_text(command, call);
  for (const CommandOption& option : command.options) add_option(*app, option);
  for (const Command& below : command.subcommands) add_command(*app, below, call + " " + below.name, helps, chosen);
  if (!command.run && !command.subcommands.empty()) app->require_subcommand(1);
  app->callback([app, &command, &chosen] {
    if (!app->get_subcommands().empty()) return;  // the deepest subcommand is chosen
    const auto given = [&](const std::string& name) { return app->get_option(name)->count() > 0; };
    if (!command.one_required.empty() && std::ranges::none_of(command.one_required, given))
      throw CLI::RequiredError(join(command.one_required, " or "));
    chosen = &command;
  });
}

// The help of `megalith` without a command.
Command whole_program(const std::vector<Command>& commands) {
  return {.name = "megalith",
          .about = "Megalith trains transformer models that are too large or too slow for your machine.",
          .details = "A run is described by one YAML file. docs/guides/first_hour.md shows the first steps.",
          .examples = {"megalith train first.yaml", "megalith train --help"},
          .subcommands = commands};
}

// Reports an unknown command first. CLI11 would only list it and all arguments after it as unexpected.
std::string what_is_wrong(const std::vector<Command>& commands, int argc, char** argv, const CLI::ParseError& error) {
  std::string command;
  for (int i = 1; i < argc && command.empty(); i++)
    if (argv[i][0] != '-') command = argv[i];
  if (command.empty()) return std::string(error.what()) + "; see megalith --help";
  std::vector<std::string_view> known;
  for (const Command& each : commands) known.push_back(each.name);
  if (std::find(known.begin(), known.end(), command) != known.end())
    return fmt::format("{}; see megalith {} --help", error.what(), command);
  std::string_view near = nearest(command, known);
  return fmt::format("expected a command, got {}; {}", command,
                     near.empty() ? "megalith --help lists them" : fmt::format("did you mean {}?", near));
}

}  // namespace

ParsedLine parse_command_line(int argc, char** argv, const std::vector<Command>& commands) {
  ParsedLine line;
  HelpTexts helps;
  CLI::App app("", "megalith");
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.add_flag("--json", line.json);
  app.set_version_flag("--version", MEGALITH_VERSION);
  app.formatter_fn([&](const CLI::App* asked, const std::string&, CLI::AppFormatMode) { return helps.at(asked); });
  helps[&app] = help_text(whole_program(commands), "megalith");
  for (const Command& command : commands) add_command(app, command, "megalith " + command.name, helps, line.command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    line.exit_code = app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    line.error = with_short_words(what_is_wrong(commands, argc, argv, error));
  }
  return line;
}

}  // namespace megalith

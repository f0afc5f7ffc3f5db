#include "cli/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "base/either.h"
#include "base/join.h"
#include "cli/explain_arguments.h"
#include "cli/help.h"

namespace megalith {
namespace {

using HelpTexts = std::map<const CLI::App*, std::string>;

// A range check. CLI11's own check prints its limits with 300 digits.
CLI::Validator number_between(double least, std::optional<double> most, bool whole) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool read = error == std::errc() && end == text.data() + text.size();
        const bool fits = value >= least && value <= most.value_or(std::numeric_limits<double>::infinity());
        if (read && fits && (!whole || value == std::floor(value))) return std::string();
        return fmt::format("expected a {}number from {}{}, got {}", whole ? "whole " : "", least,
                           most ? fmt::format(" to {}", *most) : "", text);
      },
      "");
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [=](std::string& text) {
        if (std::ranges::find(words, text) != words.end()) return std::string();
        return fmt::format("expected {}, got {}", either(std::vector<std::string_view>(words.begin(), words.end())), text);
      },
      "");
}

CLI::Option* add_target(CLI::App& app, const CommandOption& option) {
  const std::string name = option.flags();
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
  const bool whole = !std::holds_alternative<double*>(option.target);
  if (rules.least) added->check(number_between(*rules.least, rules.most, whole));
  if (!rules.words.empty()) added->check(one_of(rules.words));
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

// Returns the first of `commands` that the arguments name, or null.
const Command* named(const std::vector<Command>& commands, const std::vector<std::string>& arguments) {
  const auto name = std::ranges::find_first_of(arguments, commands, {}, {}, &Command::name);
  return name == arguments.end() ? nullptr : &*std::ranges::find(commands, *name, &Command::name);
}

std::string what_is_wrong(const std::vector<Command>& commands, int argc, char** argv, const CLI::ParseError& error) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (const std::string known = explain_arguments(commands, arguments); !known.empty()) return known;
  const Command* command = named(commands, arguments);
  if (!command) return fmt::format("{}; see megalith --help", error.what());
  const Command* below = named(command->subcommands, arguments);
  const std::string text = error.what(), &example = (below ? below : command)->examples.front();
  if (dynamic_cast<const CLI::RequiredError*>(&error)) return fmt::format("{}; for example: {}", text, example);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error))  // "--ranks: 1 required INT missing"
    return fmt::format("{} needs a value; for example: {}", text.substr(0, text.find(':')), example);
  return fmt::format("{}; see megalith {}{} --help", error.what(), command->name, below ? " " + below->name : "");
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

#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <type_traits>

#include "base/join.h"

namespace megalith {
namespace {

constexpr size_t kWidth = 100;  // columns of a line

struct Row {
  std::string name, about;
};

struct Section {
  const char* title;
  std::vector<Row> rows;
};

// Breaks a text between words. All lines except the first are indented.
std::string wrapped(const std::string& text, size_t indent) {
  std::string all;
  size_t column = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool first = all.empty(), fits = column + 1 + word.size() <= kWidth;
    column = (first || !fits ? indent : column + 1) + word.size();
    all += first ? "" : fits ? " " : "\n" + std::string(indent, ' ');
    all += word;
  }
  return all;
}

// Wraps each line, except lines that begin with a space: these are samples of a file.
std::string paragraphs(const std::string& text) {
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all += (line.starts_with(' ') ? line : wrapped(line, 0)) + "\n";
  return all;
}

bool is_argument(const CommandOption& option) {
  return !option.name.starts_with('-');
}

// Adds "..." if several values may follow.
std::string shown_name(const CommandOption& option) {
  const bool list = std::holds_alternative<std::vector<std::string>*>(option.target);
  return option.name + (list && !option.rules.one_value ? "..." : "");
}

std::string default_of(const CommandOption& option) {
  return std::visit(
      [](const auto* target) -> std::string {
        if constexpr (fmt::is_formattable<std::remove_cvref_t<decltype(*target)>>::value) return fmt::format("{}", *target);
        else return "";
      },
      option.target);
}

// Adds to the text of an option what its rules say.
std::string shown_about(const CommandOption& option) {
  const OptionRules& rules = option.rules;
  std::string text = option.about;
  if (!rules.needs.empty()) text += fmt::format(" Only with {}.", rules.needs);
  if (!rules.excludes.empty()) text += fmt::format(" Not with {}.", rules.excludes);
  if (rules.shows_default) text += fmt::format(" Default: {}.", default_of(option));
  if (rules.required && !is_argument(option)) text += " Required.";
  return text;
}

// Arguments come first, then the options that must be given.
std::string usage(const Command& command, const std::string& call) {
  std::string own = call, lines;
  for (const CommandOption& option : command.options) {
    const std::string name = shown_name(option);
    if (is_argument(option)) own += option.rules.required ? " " + name : " [" + name + "]";
  }
  for (const CommandOption& option : command.options)
    if (!is_argument(option) && option.rules.required) own += " " + shown_name(option);
  if (command.run || command.subcommands.empty()) lines += fmt::format("Usage: {} [OPTIONS]\n", own);
  if (!command.subcommands.empty())
    lines += fmt::format("{:<7}{} COMMAND [OPTIONS]\n", lines.empty() ? "Usage:" : "", call);
  return lines;
}

std::vector<Section> sections_of(const Command& command) {
  Section arguments{"Arguments", {}}, options{"Options", {}}, commands{"Commands", {}};
  for (const CommandOption& option : command.options)
    (is_argument(option) ? arguments : options).rows.push_back({shown_name(option), shown_about(option)});
  options.rows.push_back({"-h,--help", "Print this help."});
  options.rows.push_back({"--json", "Print one JSON object on standard output, and all other text on standard error."});
  options.rows.push_back({"--version", "Print the version of the program."});
  for (const Command& below : command.subcommands) commands.rows.push_back({below.name, below.about});
  return {arguments, commands, options};
}

std::string show(const std::vector<Section>& sections) {
  size_t widest = 0;
  for (const Section& section : sections)
    for (const Row& row : section.rows) widest = std::max(widest, row.name.size());
  std::string text;
  for (const Section& section : sections) {
    if (!section.rows.empty()) text += fmt::format("\n{}:\n", section.title);
    for (const Row& row : section.rows)
      text += fmt::format("  {:<{}}  {}\n", row.name, widest, wrapped(row.about, widest + 4));
  }
  return text;
}

}  // namespace

std::string help_text(const Command& command, const std::string& call) {
  std::string text = paragraphs(command.about + "\n" + command.details);
  if (!command.one_required.empty()) text += join(command.one_required, " or ") + " is required.\n";
  text += "\n" + usage(command, call) + show(sections_of(command));
  text += "\nExamples, with the files of docs/guides/first_hour.md:\n";
  for (const std::string& example : command.examples) text += fmt::format("  {}\n", example);
  return text;
}

}  // namespace megalith

#include "config/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/join.h"
#include "config/options.h"

namespace megalith {
namespace {

// Says what to write instead of an argument without "=".
std::string instead_of(const std::string& argument) {
  if (argument.ends_with(".yaml") || argument.ends_with(".yml"))
    return "a run has one settings file: write settings of the other as key=value";
  const size_t colon = std::min(argument.find(':'), argument.size());
  const std::string key = argument.substr(0, colon);
  if (!find_option(key)) return "write for example train.lr=1e-3";
  return fmt::format("write {}={}", key, colon < argument.size() ? argument.substr(colon + 1) : "VALUE");
}

// Returns the number of arguments from the first on that are one setting with spaces around "=". 0: there are none.
size_t spaced(std::span<const std::string> arguments) {
  const auto has_equals = [](const std::string& argument) { return argument.find('=') != std::string::npos; };
  if (arguments.size() < 2 || (has_equals(arguments[0]) && !arguments[0].ends_with('='))) return 0;
  if (arguments[0].ends_with('=')) return has_equals(arguments[1]) ? 0 : 2;
  if (arguments[1] == "=" && arguments.size() > 2 && !has_equals(arguments[2])) return 3;
  return arguments[1].starts_with('=') && arguments[1] != "=" ? 2 : 0;
}

UserError about_spaces(std::span<const std::string> arguments) {
  return UserError({kCommandLine, "", "key=value without spaces", join(arguments, " "), "write " + join(arguments, "")});
}

// Returns the number of arguments from the first on that a shell made from one list or mapping without quotes, as in
// data.train=[a.txt, b.txt]. 0: there are none.
size_t unquoted(std::span<const std::string> arguments) {
  int64_t open = 0;
  for (size_t i = 0; i < arguments.size(); i++) {
    for (const char c : arguments[i]) open += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (open <= 0) return open == 0 && i > 0 ? i + 1 : 0;
  }
  return 0;
}

UserError about_quotes(std::span<const std::string> arguments) {
  const std::string whole = join(arguments, " ");
  return UserError({kCommandLine, "", "a list or mapping in quotes", whole, fmt::format("write '{}'", whole)});
}

// Throws UserError for "train.lr=1e-3,train.steps=5".
void refuse_several(const std::string& argument) {
  for (size_t comma = argument.find(','); comma != std::string::npos; comma = argument.find(',', comma + 1)) {
    const std::string_view rest = std::string_view(argument).substr(comma + 1);
    if (find_option(rest.substr(0, std::min(rest.find('='), rest.size()))))
      throw UserError({kCommandLine, "", "one setting in an argument", argument,
                       fmt::format("separate settings by a space: {} {}", argument.substr(0, comma), rest)});
  }
}

Override read_override(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UserError({kCommandLine, "", "key=value", argument.empty() ? "an empty argument" : quote_yaml(argument),
                     instead_of(argument)});
  refuse_several(argument);
  const std::string key = argument.substr(0, equals);
  // It may come from a shell variable that is not set.
  if (argument.find_first_not_of(" \t\n", equals + 1) == std::string::npos)
    throw UserError({kCommandLine, key, "a value after =", "nothing", fmt::format("{}=null sets the default", key)});
  try {
    Yaml value = parse_yaml(std::string_view(argument).substr(equals + 1), kCommandLine, false);
    value.where = kCommandLine;
    return {key, std::move(value)};
  } catch (const UserError& error) {  // names only the value: add the key
    UserError::Parts parts = error.parts;
    parts.key = parts.key.empty() ? key : fmt::format("{}.{}", key, parts.key);
    throw UserError(std::move(parts));
  }
}

}  // namespace

std::vector<Override> read_overrides(std::span<const std::string> arguments, Mistakes& mistakes) {
  std::vector<Override> overrides;
  while (!arguments.empty()) {
    const size_t with_spaces = spaced(arguments), without_quotes = unquoted(arguments);
    if (with_spaces > 0) mistakes.add(about_spaces(arguments.first(with_spaces)));
    else if (without_quotes > 0) mistakes.add(about_quotes(arguments.first(without_quotes)));
    else mistakes.none_in([&] { overrides.push_back(read_override(arguments.front())); });
    arguments = arguments.subspan(std::max({size_t{1}, with_spaces, without_quotes}));
  }
  return overrides;
}

}  // namespace megalith

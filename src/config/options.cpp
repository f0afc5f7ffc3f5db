#include "config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/either.h"
#include "base/error.h"
#include "base/join.h"
#include "base/units.h"
#include "config/curriculum_option.h"
#include "config/known_elsewhere.h"
#include "config/nearest.h"
#include "config/pacing_text.h"

namespace megalith {
namespace {

// Shows a bound as a user would write it: 100k, 1B.
std::string show_bound(double value) {
  for (auto [unit, suffix] : {std::pair{1e9, "B"}, {1e6, "M"}, {1e3, "k"}})
    if (value >= unit && std::fmod(value, unit) == 0) return fmt::format("{}{}", value / unit, suffix);
  return fmt::format("{}", value);
}

std::string hint_for(const Option& option, const Yaml& value) {
  if (const auto words = option.all_words(); value.kind == Yaml::Kind::scalar && !words.empty()) {
    std::string_view near = word_for(option.name, value.text);
    if (near.empty()) near = nearest(value.text, words);
    if (!near.empty()) return fmt::format("did you mean {}?", near);
  }
  switch (option.type) {
    case OptionType::count:
      return parse_count(value.text) ? "" : "write a number such as 5000, 10k or 50M";
    case OptionType::size:
      return "write a size such as 512MiB or 4GiB";
    case OptionType::numbers:
      return fmt::format("write it as {}", option.default_text);
    default:
      return "";
  }
}

constexpr size_t kKeysListed = 5;

// Suggests a key with the same last part, then advice for a key of another program, then a similar spelling. Otherwise
// lists some keys of the section.
std::string hint_for_key(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1), section = name.substr(0, name.size() - last.size());
  const auto named = [](std::string_view key) {  // returns the option with this last part
    const auto found = std::ranges::find(options(), key, &Option::key);
    return found == options().end() ? std::string_view{} : found->name;
  };
  if (const auto advice = advice_for_key(name)) return *advice;
  if (const std::string_view same = named(last); !same.empty()) return fmt::format("did you mean {}?", same);
  std::vector<std::string_view> names = section_names(), last_names, siblings;
  for (const Option& option : options()) {
    names.push_back(option.name);
    last_names.push_back(option.key());
    if (option.name.starts_with(section)) siblings.push_back(option.name.substr(section.size()));
  }
  std::string_view near = nearest(name, names);
  if (near.empty()) near = named(nearest(last, last_names));
  if (!near.empty()) return fmt::format("did you mean {}?", near);
  if (siblings.empty() || section.empty()) return "`megalith config` lists all keys";
  const std::string_view whole = section.substr(0, section.size() - 1);
  std::ranges::stable_sort(siblings, {}, [&](std::string_view key) { return edit_distance(last.substr(0, 100), key); });
  siblings.resize(std::min(siblings.size(), kKeysListed));
  return fmt::format("{} has {}, ...; `megalith config {}` lists all", whole, join(siblings, ", "), whole);
}

}  // namespace

bool Range::holds(double value) const {
  return (open_low ? value > low : value >= low) && (open_high ? value < high : value <= high);
}

std::string Range::describe() const {
  bool has_low = std::isfinite(low), has_high = std::isfinite(high) && high < 1e17;  // larger bounds mean "any"
  std::string text;
  if (has_low) text = fmt::format("{} {}", open_low ? "above" : "from", show_bound(low));
  if (!has_high) return text;
  if (open_high)
    return fmt::format("{}{}below {}", text, has_low ? (open_low ? " and " : ", ") : "", show_bound(high));
  return fmt::format("{}{}{} {}", text, has_low ? " " : "", open_low || !has_low ? "up to" : "to",
                     show_bound(high));
}

std::string Option::expected() const {
  std::string bounds = range.describe();
  if (!bounds.empty()) bounds = " " + bounds;
  switch (type) {
    case OptionType::choice:
      return either(all_words());
    case OptionType::boolean:
      return "true or false";
    case OptionType::numbers:
      return fmt::format("two numbers{}", bounds);
    case OptionType::texts:
      return fmt::format("a {0} or a list of {0}s", unit.empty() ? "string" : unit);
    case OptionType::blend:
      return fmt::format("a {0}, a list of {0}s, or a list of {{path: {1}, weight: NUMBER}}", unit, "PATH");
    case OptionType::curriculum:
      return fmt::format("a list of {}", curriculum_form());
    case OptionType::layers:
      return fmt::format("a list of layers such as [1, 2], each once, or {}", either(words));
    case OptionType::span:
      return fmt::format("{}, or {}", span_form(), either(words));
    case OptionType::pacing:
      return std::string(pacing_form());
    case OptionType::text:
      return fmt::format("a {}", unit.empty() ? "string" : unit) + (range.low > 0 ? ", not empty" : "");
    case OptionType::number:
    case OptionType::count:
    case OptionType::size:
      break;
  }
  std::string text = type == OptionType::size
                         ? "a size such as 4GiB"
                         : fmt::format("{}{}{}", type == OptionType::count ? "a whole number" : "a number",
                                       unit.empty() ? "" : fmt::format(" of {}", unit), bounds);
  return words.empty() ? text : fmt::format("{}, or {}", text, either(words));
}

void set_option(const Option& option, Config& config, const Yaml& value) {
  if (!option.set(config, value))
    throw UserError({value.where, std::string(option.name), option.expected(), value.describe(),
                     hint_for(option, value)});
}

const Option* find_option(std::string_view name) {
  for (const Option& option : options())
    if (option.name == name) return &option;
  return nullptr;
}

bool is_section(std::string_view name) {
  return std::any_of(options().begin(), options().end(), [&](const Option& option) {
    return option.name.size() > name.size() && option.name.starts_with(name) &&
           option.name[name.size()] == '.';
  });
}

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const Option& option : options())
    for (size_t dot = option.name.find('.'); dot != std::string_view::npos;
         dot = option.name.find('.', dot + 1))
      if (std::find(names.begin(), names.end(), option.name.substr(0, dot)) == names.end())
        names.push_back(option.name.substr(0, dot));
  return names;
}

void unknown_key(std::string_view name, const std::string& where) {
  if (const std::string_view list = "curriculum"; name.starts_with(list) && name.size() > list.size() &&
                                                  (name[list.size()] == '[' || name[list.size()] == '.'))
    throw UserError({where, std::string(name), "the whole list", "a part of the list",
                     "write curriculum=[{metric: ..., from: ..., to: ..., over: ...}]"});
  Yaml shown;
  shown.kind = Yaml::Kind::scalar;
  shown.text = name;
  throw UserError({where, shown.describe(), "", "", "unknown key; " + hint_for_key(name)});
}

void refuse_unknown(std::span<const UnknownKey> keys) {
  if (keys.size() == 1 || keys.front().name.starts_with("curriculum")) unknown_key(keys.front().name, keys.front().where);
  std::vector<std::string> all;
  std::string file;
  for (const auto& [name, where] : keys) {
    const size_t colon = std::min(where.rfind(':'), where.size());  // run.yaml:14
    file = where.substr(0, colon);
    const std::string line = colon < where.size() ? fmt::format(" in line {}", where.substr(colon + 1)) : "";
    all.push_back(fmt::format("{}{} ({})", shortened(name), line, hint_for_key(name)));
  }
  throw UserError({file, "", "", "", fmt::format("{} unknown keys: {}", keys.size(), some_of(all, "; "))});
}

}  // namespace megalith

#include "config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/either.h"
#include "base/error.h"
#include "base/join.h"
#include "base/nearest.h"
#include "base/units.h"
#include "config/curriculum_option.h"
#include "config/known_elsewhere.h"
#include "config/option_types.h"
#include "config/pacing_text.h"

namespace megalith {
namespace {

// Shows a bound as a user would write it: 100k, 1B.
std::string show_bound(double value) {
  for (auto [unit, suffix] : {std::pair{1e9, "B"}, {1e6, "M"}, {1e3, "k"}})
    if (value >= unit && std::fmod(value, unit) == 0) return fmt::format("{}{}", value / unit, suffix);
  return fmt::format("{}", value);
}

// A number without a unit is meant in GiB if it is small, else in MiB: memory.ram: 4, memory.ram: 4096.
std::string size_meant(const Yaml& value) {
  const std::optional<double> number = read_number(value, above(0));
  if (!number) return "write a size such as 512MiB or 4GiB";
  return fmt::format("did you mean {}{}?", *number, *number < 1024 ? "GiB" : "MiB");
}

std::string_view boolean_meant(const std::string& plain) {
  if (plain == "yes" || plain == "on" || plain == "1" || plain == "true") return "true";
  return plain == "no" || plain == "off" || plain == "0" || plain == "false" ? "false" : "";
}

// Returns the word that a text means: in another spelling, in the words of another program, or nearly so.
std::string_view word_meant(const Option& option, const std::string& text) {
  const std::vector<std::string_view> words = option.all_words();
  const std::string plain = plain_word(text);
  if (const std::string_view known = word_for(option.name, text); !known.empty()) return known;
  if (option.type == OptionType::boolean) return boolean_meant(plain);
  const auto same = std::ranges::find(words, plain, plain_word);
  return same != words.end() ? *same : nearest(text, words);
}

std::string hint_for(const Option& option, const Yaml& value) {
  if (value.kind == Yaml::Kind::scalar)
    if (const std::string_view word = word_meant(option, value.text); !word.empty()) return fmt::format("did you mean {}?", word);
  if (!option.advice.empty()) return std::string(option.advice);
  switch (option.type) {
    case OptionType::count:
      return parse_count(value.text) ? "" : "write a number such as 5000, 10k or 50M";
    case OptionType::size:
      return size_meant(value);
    case OptionType::numbers:
      return fmt::format("write it as {}", option.default_text);
    case OptionType::span:
      return read_count(value, from(1)) ? fmt::format("did you mean {} steps?", value.text) : "";
    case OptionType::number:
      return read_number(value, {}) ? "" : fmt::format("`megalith config {}` explains it", option.name);
    default:
      return "";
  }
}

constexpr size_t kKeysListed = 5;

// Returns the options with this last part, in any of the spellings min_lr, min-lr and minLr.
std::vector<std::string_view> named(std::string_view last) {
  std::vector<std::string_view> names;
  for (const Option& option : options())
    if (plain_word(option.key()) == plain_word(last)) names.push_back(option.name);
  return names;
}

// Returns the key or section that is spelled most like `name`: first of its own section, then of all. Empty: none.
std::string nearest_key(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1), section = name.substr(0, name.size() - last.size());
  std::vector<std::string_view> siblings, ends = section_names();
  for (const Option& option : options()) {
    ends.push_back(option.key());
    if (option.name.starts_with(section)) siblings.push_back(option.name.substr(section.size()));
  }
  if (const std::string_view near = nearest(last, siblings); !section.empty() && !near.empty())
    return fmt::format("{}{}", section, near);
  const std::string_view near = nearest(last, ends);
  return near.empty() || is_section(near) ? std::string(near) : either(named(near));
}

// Returns the option of the same section that a key of another program means: data.tokenizer.vocab for
// data.tokenizer.vocab_size. Null: none.
const Option* meant_in_section(std::string_view name) {
  const std::string_view ours = ours_for(name), section = name.substr(0, std::min(name.rfind('.'), name.size()));
  const Option* here = ours.empty() ? nullptr : find_option(fmt::format("{}.{}", section, ours.substr(ours.rfind('.') + 1)));
  return here && here->name != ours ? here : nullptr;
}

// Suggests advice for a key of another program, then a key with the same last part, then a similar spelling. Otherwise
// lists some keys of the section.
std::string hint_for_key(std::string_view name) {
  const std::string_view section = name.substr(0, std::min(name.rfind('.'), name.size()));
  if (name.find_first_not_of("0123456789", name.rfind('.') + 1) == std::string_view::npos)
    return "a comma separates entries: write decimals with a point";
  if (const Option* meant = meant_in_section(name)) return fmt::format("did you mean {}?", meant->name);
  if (const auto advice = advice_for_key(name)) return *advice;
  if (const std::string_view meant = section_meant(name); !meant.empty()) return fmt::format("did you mean {}?", meant);
  if (const auto same = named(name.substr(name.rfind('.') + 1)); !same.empty()) return fmt::format("did you mean {}?", either(same));
  if (const std::string near = nearest_key(name); !near.empty()) return fmt::format("did you mean {}?", near);
  if (section != name && is_section(section)) return keys_of(section, name.substr(section.size() + 1));
  return "`megalith config` lists all keys";
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

// True for "spill: true", which means a switch, not a folder of this name.
bool is_no_path(const Option& option, const Yaml& value) {
  return option.unit == "directory" && (value.text == "true" || value.text == "false");
}

void set_option(const Option& option, Config& config, const Yaml& value) {
  if (is_no_path(option, value) || !option.set(config, value))
    throw UserError({value.where, std::string(option.name), option.expected(), value.describe(),
                     hint_for(option, value)});
}

const Option* find_option(std::string_view name) {
  for (const Option& option : options())
    if (option.name == name) return &option;
  return nullptr;
}

const Option* option_meant(std::string_view word) {
  if (const Option* option = find_option(word)) return option;
  if (advice_for_key(word)) return find_option(ours_for(word));
  const std::vector<std::string_view> same = named(word.substr(word.rfind('.') + 1));
  return same.empty() ? nullptr : find_option(same.front());
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

UserError unknown_key(std::string_view name, const std::string& where, const std::string& more) {
  if (const std::string_view list = "curriculum"; name.starts_with(list) && name.size() > list.size() &&
                                                  (name[list.size()] == '[' || name[list.size()] == '.'))
    return UserError({where, std::string(name), "the whole list", "a part of the list",
                      "write curriculum=[{metric: ..., from: ..., to: ..., over: ...}]"});
  return UserError({where, describe_text(std::string(name)), "", "",
                    fmt::format("unknown key; {}{}", hint_for_key(name), more.empty() ? "" : fmt::format(" ({})", more))});
}

std::string keys_of(std::string_view section, std::string_view like) {
  std::vector<std::string_view> keys;
  for (const Option& option : options())
    if (option.name.starts_with(fmt::format("{}.", section))) keys.push_back(option.name.substr(section.size() + 1));
  if (!like.empty())
    std::ranges::stable_sort(keys, {}, [&](std::string_view key) { return edit_distance(like.substr(0, 100), key); });
  const bool all = keys.size() <= kKeysListed;
  keys.resize(std::min(keys.size(), kKeysListed));
  return fmt::format("{} has {}{}; `megalith config {}` {}", section, join(keys, ", "), all ? "" : ", ...", section,
                     all ? "explains them" : "lists all");
}

}  // namespace megalith

// The table of all options. These read it: parsing, `megalith config`, the reference page, the JSON schema, the written
// config, and the check of what a resumed run may change.
#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/yaml.h"

namespace megalith {

// clang-format off
enum class OptionType {
  count, number, boolean, text, texts, blend, size, choice, numbers, curriculum, layers, span, pacing
};
// clang-format on

// Bounds are inclusive unless `open_*` is set. A missing bound is infinity.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false, open_high = false;
  bool holds(double value) const;
  std::string describe() const;  // "from 0 to 1", "above 0", ""
};

// A part of an option's value that is compared separately when two configurations are compared.
struct OptionPiece {
  std::string key;    // "curriculum[0].to"
  std::string value;  // as YAML
  bool may_change = false;  // a resumed run may change it
};

struct Option {
  std::string_view name;  // "train.lr"; sections are separated by dots
  OptionType type = OptionType::text;
  std::string_view unit;  // "steps", "bytes", ...
  Range range;
  std::string_view default_text;  // for the user; a formula if it depends on other keys
  std::string_view about;         // one sentence
  std::vector<std::string_view>
      words;                      // choice: all values; other types: words accepted besides a value ("auto")
  std::vector<std::string_view> (*registered_words)() = nullptr;  // replaces `words` if they are known only at run time
  bool may_change = false;        // a resumed run may change it
  bool shorthand = false;         // a plain value given to this option's section means this option
  std::string_view advice;        // for a wrong value: what to write; empty: follows from the type
  std::string_view applies_when;  // for the user; empty = always
  std::function<bool(const Config&)> applies;  // empty = always
  // Reads a value into the config. Returns false and changes nothing if the type or range is wrong.
  std::function<bool(Config&, const Yaml&)> set;
  // Returns the value as YAML that `set` can read back, or nothing if another key has the value.
  std::function<std::optional<std::string>(const Config&)> get;
  // Splits the value into pieces with different keys. Empty function: the value is compared as a whole.
  std::function<std::vector<OptionPiece>(const Config&)> pieces;

  std::vector<std::string_view> all_words() const { return registered_words ? registered_words() : words; }
  std::string expected() const;  // the values that `set` accepts: "a whole number of steps from 1, or auto"
  std::string_view section() const { return name.substr(0, name.rfind('.')); }  // "train"
  std::string_view key() const { return name.substr(name.rfind('.') + 1); }     // "lr"
};

std::span<const Option> options();
const Option* find_option(std::string_view name);  // nullptr if no option has this name

// Returns the option that a word of the command line means: "train.lr", "lr", "learning-rate". Null: none.
const Option* option_meant(std::string_view word);

// Reads a value into the config or throws UserError{value.where, name, expected, got, hint}.
void set_option(const Option& option, Config& config, const Yaml& value);

// Sections are the first parts of option names: "train", "model.dropout".
bool is_section(std::string_view name);
std::vector<std::string_view> section_names();

// The mistake of a name that is neither an option nor a section. Suggests the nearest one. `more` is added to the hint.
UserError unknown_key(std::string_view name, const std::string& where, const std::string& more = "");

// Returns the keys of a section for a message: "train has batch, micro_batch, ...; `megalith config train` lists all".
// `like`: begins with the keys that are spelled like this.
std::string keys_of(std::string_view section, std::string_view like = "");

// Returns the output of `megalith config KEY`: an option, a section, or everything if `key` is empty. Throws UserError
// for an unknown key. Suggests the nearest one.
std::string explain(std::string_view key);

}  // namespace megalith

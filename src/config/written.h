// The values that a user wrote, per option, with their places. parse.cpp turns them into a Config.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mistakes.h"
#include "config/options.h"
#include "config/yaml.h"

namespace megalith {

// Pairs of keys that exclude each other. An override of one replaces the other.
inline constexpr std::pair<std::string_view, std::string_view> kAlternatives[] = {
    {"train.steps", "train.tokens"},
    {"data.tokenizer.path", "data.tokenizer.train"},
    {"data.tokenizer.path", "data.tokenizer.vocab"},
};

// True for the options that model.from replaces and model.preset fills.
bool gives_shape(const Option& option);

// The file is layer 0; each override is one layer higher.
class Written {
 public:
  explicit Written(std::string file) : file_(std::move(file)) {}

  // Adds the values of an option or of a section. Keeps unknown keys and notes other mistakes.
  void add(std::string_view name, const Yaml& value, int layer, Mistakes& mistakes);

  const Yaml* find(std::string_view name) const;  // null: not written

  // Returns where the value of a key ("train.lr", "curriculum[0].to") or of a section comes from: "run.yaml:14",
  // "command line", "run.yaml (default)", "run.yaml:2 (preset gpt2-124m)", "run.yaml:2 (config.json of FOLDER)". Returns
  // the file if there is no value.
  std::string where(std::string_view key) const;

  struct Unknown {
    std::string name;
    Yaml value;
  };
  std::span<const Unknown> unknown() const { return unknown_; }  // keys that are neither options nor sections

  // Throws UserError if both are written.
  void refuse_both(std::string_view a, std::string_view b, std::string_view hint = "remove one") const;

 private:
  struct Value {
    Yaml value;
    int layer;
  };

  void add_entries(std::string_view section, const Yaml& map, int layer, Mistakes& mistakes);
  void put(const Option& option, const Yaml& value, int layer);
  void replace_in_file(std::string_view name, int layer);
  std::string where_of_section(std::string_view section) const;
  std::string where_not_written(const Option& option) const;

  std::string file_;
  std::map<std::string_view, Value> values_;  // keys are views of the option table
  std::vector<Unknown> unknown_;
};

// Reads a YAML text and the `key=value` overrides after it. `where` names the file. Throws UserError if the text is not
// YAML, because then nothing can be read from it.
Written read_settings(std::string_view yaml_text, const std::string& where, std::span<const std::string> overrides,
                      Mistakes& mistakes);

}  // namespace megalith

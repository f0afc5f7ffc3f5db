// Writes a complete configuration as text, and compares two configurations.
#pragma once
#include <string>
#include <vector>

#include "config/config.h"

namespace megalith {

// Returns every setting with its resolved value; parse_config() of this text gives an equal Config. Leaves out keys
// whose value is in another key: train.tokens (now train.steps), and the shape of a model that comes from a folder
// (model.from).
std::string to_yaml(const Config& config);

struct Option;

struct Difference {
  std::string key;
  std::string before, after;  // as YAML; "(not set)" if the key has no value
  bool may_change = false;    // a resumed run may use the new value
};

// Returns the keys whose values differ, in the order of the option table.
std::vector<Difference> differences(const Config& before, const Config& after);

// True if keep_decisions() replaces the value of this option.
bool keeps_decision(const Option& option, const Config& saved, const Config& now);

// For settings that a resumed run must not change: replaces "auto" in `now` by the value in `saved`. So a run that
// chose its micro-batch, threads or vocabulary keeps them.
Config keep_decisions(const Config& saved, Config now);

}  // namespace megalith

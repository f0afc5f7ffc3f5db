// A complete configuration as text, and what changed between two of them.
#pragma once
#include <string>
#include <vector>

#include "config/config.h"

namespace megalith {

// Every setting with its resolved value; parse_config() of it gives an equal Config. What is resolved into
// other keys is left out: train.tokens (now train.steps), the shape of a model that comes from a folder
// (model.from).
std::string to_yaml(const Config& config);

struct Difference {
  std::string key;
  std::string before, after;  // as YAML; "(not set)" where there is none
  bool may_change = false;    // a resumed run may go on with the new value
};

// Keys whose values differ, in the option table's order.
std::vector<Difference> differences(const Config& before, const Config& after);

// What `now` leaves open ("auto") and `saved` has already decided, for settings that a resumed run must not
// change: taken from `saved`. A run that chose its micro-batch, threads or vocabulary keeps them.
Config keep_decisions(const Config& saved, Config now);

}  // namespace megalith

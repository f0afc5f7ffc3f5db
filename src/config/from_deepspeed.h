// Translates DeepSpeed's data efficiency settings to our YAML.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

struct FromDeepSpeed {
  std::string yaml;                // run, curriculum, token_dropping and train keys to put into a run's file
  std::vector<std::string> notes;  // changes, and settings without a counterpart; one line each
};

// Takes a whole ds_config.json: its data_efficiency tree and the older top-level curriculum_learning. Throws UserError
// with the path of DeepSpeed's key if a value is malformed or cannot be translated (a custom schedule). The returned
// YAML has passed parse_config().
FromDeepSpeed from_deepspeed(std::string_view json, const std::string& where);

}  // namespace megalith

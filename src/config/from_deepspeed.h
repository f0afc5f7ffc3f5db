// DeepSpeed's data efficiency settings in our words.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

struct FromDeepSpeed {
  std::string yaml;                // run, curriculum, token_dropping and train keys to put into a run's file
  std::vector<std::string> notes;  // what was changed, what has no counterpart; one line each
};

// Takes a whole ds_config.json: its data_efficiency tree and the older top-level curriculum_learning. UserError, with the
// path of DeepSpeed's key, for what is malformed and for what cannot be translated (a custom schedule). What it returns
// has been through parse_config().
FromDeepSpeed from_deepspeed(std::string_view json, const std::string& where);

}  // namespace megalith

// Turns YAML and `key=value` overrides into checked values. Every mistake is a UserError. It names the place (file and
// line, "command line", or the default) and the key. It also says what was expected, what was found and what to do.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"

namespace megalith {

// Reads the YAML file of a run. The default of run.dir uses the file's name without its extension.
Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});

// The same from text; `where` names the file in messages. Overrides are `key=value` with a YAML value, applied in order
// after the text. Each replaces earlier values of the settings that it names. `key=null` sets a setting back to
// its default. The result has passed check_settings() and, unless model.from gives the shape, check_model() of
// check.h.
Config parse_config(std::string_view yaml_text, const std::string& where, const std::string& default_run_name,
                    std::span<const std::string> overrides = {});

// Returns where the value of a key comes from (Written::where), for a mistake that is found after parsing.
std::string source_of(std::string_view key, const std::filesystem::path& path, std::span<const std::string> overrides = {});

}  // namespace megalith

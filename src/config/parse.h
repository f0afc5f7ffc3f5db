// From YAML and `key=value` overrides to checked values, once. Every mistake is a UserError that says where
// (file:line or "command line"), which key, what was expected, what was there and what to do.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"

namespace megalith {

// Reads a run's YAML file. The run's name, for run.dir's default, is the file's name without its extension.
Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});

// The same from text; `where` stands for the file in messages. Overrides are `key=value` with a YAML value,
// applied in order after the text: each replaces what was written for the settings it names, and an empty
// value (`key=`) takes a setting back to its default. The result has passed check_settings() and, unless
// model.from leaves the shape open, check_model() of check.h.
Config parse_config(std::string_view yaml_text, const std::string& where, const std::string& default_run_name,
                    std::span<const std::string> overrides = {});

}  // namespace megalith

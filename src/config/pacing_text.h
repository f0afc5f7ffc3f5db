// Reads and writes the parts of a pacing: "5000 steps", "20M tokens", "root 2", [[0, 64], [1000, 128]].
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/yaml.h"

namespace megalith {

std::string_view span_form();    // the "expected" part of messages
std::string_view pacing_form();

// Return nothing or false if the value does not have this form.
std::optional<std::pair<int64_t, Counted>> read_span(const Yaml& value);  // "5000 steps"; "steps" alone means 0 steps
bool read_pacing(const Yaml& value, PacingSettings& into);                // linear, root R or a table
// Sets `from`, `to` and `over` of a pacing with a table: first value, last value, and where the last value begins.
void settle_ends(PacingSettings& pacing);

std::string write_span(const PacingSettings& pacing);
std::string write_pacing(const PacingSettings& pacing);

}  // namespace megalith

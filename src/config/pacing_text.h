// How the pieces of a pacing are written: "5000 steps", "20M tokens", "root 2", [[0, 64], [1000, 128]].
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/yaml.h"

namespace megalith {

std::string_view span_form();    // what messages say is expected
std::string_view pacing_form();

// Nothing where the value is not written so.
std::optional<std::pair<int64_t, Counted>> read_span(const Yaml& value);  // "5000 steps"; "steps" alone is 0 of them
bool read_pacing(const Yaml& value, PacingSettings& into);                // linear, root R or a table
// Of a table: its first and last value, and where the last begins.
void settle_ends(PacingSettings& pacing);

std::string write_span(const PacingSettings& pacing);
std::string write_pacing(const PacingSettings& pacing);

}  // namespace megalith

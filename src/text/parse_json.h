// JSON with errors in our words.
#pragma once
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace megalith {

// UserError with the file, line and column (bytes, from 1) of the first thing that is not JSON.
nlohmann::json parse_json(std::string_view text, const std::string& where);

}  // namespace megalith

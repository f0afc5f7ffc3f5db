// Parses and prints JSON. nlohmann's parser and printer are compiled once, in json.cpp. A header includes this file or
// json_fwd.hpp. A .cpp file that builds or reads values includes nlohmann/json.hpp.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace megalith {

// The maximum nesting depth of lists and objects. Code that walks a value may recurse once per level.
inline constexpr int kDeepestJson = 256;

// Throw nlohmann::json::parse_error, and UserError if the text is nested too deeply.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

// For files. Throws UserError with the file, line and column (in bytes, from 1) of the first byte that is not valid JSON.
nlohmann::json parse_json(std::string_view text, const std::string& where);

// Return a value with is_discarded() if `text` is not JSON. Throw UserError with the file if it is nested too deeply.
nlohmann::json try_parse_json(std::string_view text, const std::string& where);
nlohmann::ordered_json try_parse_ordered_json(std::string_view text, const std::string& where);

// For messages, and for files that the program can write again. A text that is nested too deeply also gives a value with
// is_discarded().
nlohmann::json try_parse_json(std::string_view text);
nlohmann::ordered_json try_parse_ordered_json(std::string_view text);

// `indent` is the number of spaces per level; -1 prints one line. Throws nlohmann::json::type_error if a string is not
// UTF-8.
std::string print_json(const nlohmann::json& value, int indent = -1);
std::string print_json(const nlohmann::ordered_json& value, int indent = -1);

// Replaces bytes that are not UTF-8.
std::string print_any_json(const nlohmann::json& value, int indent = -1);
std::string print_any_json(const nlohmann::ordered_json& value, int indent = -1);

// For messages: prints one line. Replaces bytes that are not UTF-8, and escapes all characters beyond ASCII.
std::string print_ascii_json(const nlohmann::json& value);
std::string print_ascii_json(const nlohmann::ordered_json& value);

}  // namespace megalith

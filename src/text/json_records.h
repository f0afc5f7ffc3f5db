// Reads small JSON files that contain a list, such as prompts or questions.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace megalith {

// True if the file name ends in .json, .jsonl or .ndjson.
bool is_json_name(const std::filesystem::path& path);

// Reads a JSON array, or one value per line; skips empty lines. Calls `use` with each value and its place: "file:LINE",
// or "file: entry N" for an array. Throws UserError with the place if something is not JSON.
void for_each_json_record(const std::filesystem::path& path,
                          const std::function<void(const nlohmann::json& value, const std::string& where)>& use);

// Returns the text in a field of a record. Throws UserError with the place if there is no such text.
std::string text_in(const nlohmann::json& record, const std::string& key, const std::string& where, const std::string& hint = "");

// Returns a value as messages show it: cut if it is long.
std::string shown(const nlohmann::json& value);

}  // namespace megalith

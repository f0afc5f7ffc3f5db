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

}  // namespace megalith

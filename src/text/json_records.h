// Small JSON files that hold a list: prompts, questions.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace megalith {

// Whether the name of a file says that it holds JSON: .json, .jsonl, .ndjson.
bool is_json_name(const std::filesystem::path& path);

// Reads one JSON array, or else a value per line; empty lines are left out. Calls `use` with each value and its place:
// "file:LINE", or "file: entry N" of an array. Throws UserError with the place of what is not JSON.
void for_each_json_record(const std::filesystem::path& path,
                          const std::function<void(const nlohmann::json& value, const std::string& where)>& use);

}  // namespace megalith

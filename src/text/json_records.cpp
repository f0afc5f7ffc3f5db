#include "text/json_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace megalith {
namespace {

constexpr const char* kJsonSpace = " \t\r\n";

nlohmann::json parse_record(std::string_view line, const std::string& where) {
  nlohmann::json value = try_parse_json(line, where);
  if (value.is_discarded())
    throw UserError({where, "", "JSON", "something else", "write one JSON value per line, or one array of values"});
  return value;
}

}  // namespace

std::string shown(const nlohmann::json& value) {
  constexpr size_t kMost = 60;
  std::string text = print_ascii_json(value);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

std::string text_in(const nlohmann::json& record, const std::string& key, const std::string& where, const std::string& hint) {
  if (!record.is_object()) throw UserError({where, key, "an object with this field", shown(record), hint});
  if (!record.contains(key)) throw UserError({where, key, "text", "no such field", hint});
  if (!record[key].is_string()) throw UserError({where, key, "text", shown(record[key]), hint});
  return record[key].get<std::string>();
}

bool is_json_name(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".json" || extension == ".jsonl" || extension == ".ndjson";
}

void for_each_json_record(const std::filesystem::path& path,
                          const std::function<void(const nlohmann::json& value, const std::string& where)>& use) {
  const std::string content = read_file(path);
  std::string_view text = content;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(kJsonSpace);
  int64_t number = 0;
  if (first != text.npos && text[first] == '[') {
    for (const nlohmann::json& value : parse_json(text, path.string()))
      use(value, fmt::format("{}: entry {}", path.string(), ++number));
    return;
  }
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string where = fmt::format("{}:{}", path.string(), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(kJsonSpace) != line.npos) use(parse_record(line, where), where);
  }
}

}  // namespace megalith

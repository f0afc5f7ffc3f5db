#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace megalith {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

bool is_too_deep(std::string_view text) {
  // Most texts have too few brackets to be too deep. Counting brackets is much faster than parsing.
  if (std::ranges::count(text, '[') + std::ranges::count(text, '{') <= kDeepestJson) return false;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string && c == '\\') i++;
    else if (c == '"') in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++depth > kDeepestJson) return true;
    else if (!in_string && (c == ']' || c == '}')) depth--;
  }
  return false;
}

void check_depth(std::string_view text, const std::string& where) {
  if (is_too_deep(text))
    throw UserError({where, "", fmt::format("JSON with at most {} levels of nesting", kDeepestJson), "more",
                     "flatten its lists and objects, or check whether the file is damaged"});
}

}  // namespace

json parse_json(std::string_view text) {
  check_depth(text, "");
  return json::parse(text);
}
ordered_json parse_ordered_json(std::string_view text) {
  check_depth(text, "");
  return ordered_json::parse(text);
}

json parse_json(std::string_view text, const std::string& where) {
  check_depth(text, where);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
    std::string_view before = text.substr(0, at);
    auto line = 1 + std::count(before.begin(), before.end(), '\n');
    size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    std::string got = "the end of the file";
    if (at < text.size()) {
      auto byte = static_cast<unsigned char>(text[at]);
      got = byte >= 0x20 && byte < 0x7F ? fmt::format("'{}'", static_cast<char>(byte))
                                        : fmt::format("the byte 0x{:02X}", byte);
    }
    throw UserError(
        {fmt::format("{}:{}:{}", where, line, at - line_begin + 1), "", "JSON", got, "check whether the file is complete"});
  }
}

json try_parse_json(std::string_view text, const std::string& where) {
  check_depth(text, where);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}
ordered_json try_parse_ordered_json(std::string_view text, const std::string& where) {
  check_depth(text, where);
  return ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

json try_parse_json(std::string_view text) {
  return is_too_deep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, /*allow_exceptions=*/false);
}
ordered_json try_parse_ordered_json(std::string_view text) {
  return is_too_deep(text) ? ordered_json(ordered_json::value_t::discarded)
                           : ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string print_json(const json& value, int indent) { return value.dump(indent); }
std::string print_json(const ordered_json& value, int indent) { return value.dump(indent); }

std::string print_any_json(const json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}
std::string print_any_json(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

std::string print_ascii_json(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}
std::string print_ascii_json(const ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

}  // namespace megalith

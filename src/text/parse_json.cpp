#include "text/parse_json.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
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
        {fmt::format("{}:{}:{}", where, line, at - line_begin + 1), "", "JSON", got, "is the file whole?"});
  }
}

}  // namespace megalith

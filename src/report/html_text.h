// Converts plain text for use inside an HTML element or a quoted attribute.
#pragma once
#include <string>
#include <string_view>

namespace megalith {

// Escapes `<`, `>`, `&` and `"`.
std::string html_text(std::string_view text);

}  // namespace megalith

// Base 64 of RFC 4648, as tokenizer files use it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

// Empty if the text is not base 64; '=' at the end may be missing.
std::optional<std::string> from_base64(std::string_view text);
std::string to_base64(std::string_view bytes);

}  // namespace megalith

// Formats words as a choice for a message.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace megalith {

// "a, b or c"; "a or b"; "a".
std::string either(std::span<const std::string_view> words);

}  // namespace megalith

// Lists in messages: "a, b, c". fmt::join would compile the formatting of its elements in every file that uses it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

std::string join(std::span<const std::string> parts, std::string_view separator);
std::string join(std::span<const std::string_view> parts, std::string_view separator);
std::string join(std::span<const int32_t> numbers, std::string_view separator);
std::string join(std::span<const int64_t> numbers, std::string_view separator);

}  // namespace megalith

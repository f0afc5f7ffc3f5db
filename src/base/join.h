// Formats lists for messages: "a, b, c". With fmt::join, every file that uses it would compile the formatting again.
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
// Joins the first five parts and counts the others: "a, b, c, d, e and 4 more".
std::string some_of(std::span<const std::string> parts, std::string_view separator = ", ");
std::string some_of(std::span<const std::string_view> parts, std::string_view separator = ", ");

}  // namespace megalith

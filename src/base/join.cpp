#include "base/join.h"

#include <algorithm>

namespace megalith {
namespace {

std::string as_text(int64_t number) { return std::to_string(number); }
std::string_view as_text(std::string_view text) { return text; }

template <class Part>
std::string joined(std::span<const Part> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); i++) {
    if (i > 0) text += separator;
    text += as_text(parts[i]);
  }
  return text;
}

template <class Part>
std::string first_joined(std::span<const Part> parts, std::string_view separator) {
  constexpr size_t kMost = 5;
  std::string text = joined(parts.first(std::min(parts.size(), kMost)), separator);
  if (parts.size() > kMost) text += " and " + std::to_string(parts.size() - kMost) + " more";
  return text;
}

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) { return joined(parts, separator); }
std::string join(std::span<const std::string_view> parts, std::string_view separator) { return joined(parts, separator); }
std::string join(std::span<const int32_t> numbers, std::string_view separator) { return joined(numbers, separator); }
std::string join(std::span<const int64_t> numbers, std::string_view separator) { return joined(numbers, separator); }

std::string some_of(std::span<const std::string> parts, std::string_view separator) {
  return first_joined(parts, separator);
}
std::string some_of(std::span<const std::string_view> parts, std::string_view separator) {
  return first_joined(parts, separator);
}

}  // namespace megalith

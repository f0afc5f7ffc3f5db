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

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) { return joined(parts, separator); }
std::string join(std::span<const std::string_view> parts, std::string_view separator) { return joined(parts, separator); }
std::string join(std::span<const int32_t> numbers, std::string_view separator) { return joined(numbers, separator); }
std::string join(std::span<const int64_t> numbers, std::string_view separator) { return joined(numbers, separator); }

std::string join_some(std::span<const std::string> names) {
  constexpr size_t kShown = 5;
  const std::string text = join(names.first(std::min(names.size(), kShown)), ", ");
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

}  // namespace megalith

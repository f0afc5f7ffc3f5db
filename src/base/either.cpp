#include "base/either.h"

#include <fmt/ranges.h>

namespace megalith {

std::string either(std::span<const std::string_view> words) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

}  // namespace megalith

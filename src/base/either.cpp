#include "base/either.h"

#include <fmt/core.h>

#include "base/join.h"

namespace megalith {

std::string either(std::span<const std::string_view> words) {
  if (words.size() < 2) return join(words, "");
  return fmt::format("{} or {}", join(words.first(words.size() - 1), ", "), words.back());
}

}  // namespace megalith

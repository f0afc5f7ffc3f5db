// The word that stands for an enumerated value, in YAML, in files and in messages. Beside each enumeration,
// names_of(Enum) lists its words; index = value.
#pragma once
#include <cstddef>
#include <string_view>

namespace megalith {

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of(value)[static_cast<size_t>(value)];
}

}  // namespace megalith
